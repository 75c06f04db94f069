/* What a Redis URL says: redis_url_parse().  URLs of one server are in test_endpoint.c, too. */
#include "storage/redis/url.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "storage/redis/endpoint.h"

TestSuite(redis_url_parse, .timeout = 60);

/* ---- good ---- */

static void expect_seeds(const struct redis_url *url, const char *wanted)
{
    char found[600] = "";
    for (size_t i = 0; i < url->n_seeds; i++) {
        size_t n = strlen(found);
        snprintf(found + n, sizeof(found) - n, "%s%s %d", i == 0 ? "" : "|", url->seeds[i].host,
            url->seeds[i].port);
    }
    cr_expect_str_eq(found, wanted);
}

Test(redis_url_parse, good)
{
    static const struct {
        const char *url;
        enum redis_kind kind;
        const char *seeds, *user, *password;
        int db;
        const char *master, *sentinel_user, *sentinel_password;
    } cases[] = {
        {"redis://u:p@h:1/2", REDIS_ONE, "h 1", "u", "p", 2, "", "", ""},
        {"unix:/run/r.sock", REDIS_ONE, "/run/r.sock 0", "", "", 0, "", "", ""},
        {"redis-cluster://a", REDIS_CLUSTER, "a 6379", "", "", 0, "", "", ""},
        {"redis-cluster://a:1,b,[::1]:3,[fe80::1]", REDIS_CLUSTER, "a 1|b 6379|::1 3|fe80::1 6379",
            "", "", 0, "", "", ""},
        {"redis-cluster://a:1,a:2", REDIS_CLUSTER, "a 1|a 2", "", "", 0, "", "", ""},
        {"redis-cluster://:s%2F%40,x:y@h:1,i:2", REDIS_CLUSTER, "h 1|i 2", "", "s/@,x:y", 0, "", "",
            ""},
        {"redis-sentinel://a,b:2/my.master-1_x", REDIS_SENTINEL, "a 26379|b 2", "", "", 0,
            "my.master-1_x", "", ""},
        {"redis-sentinel://u:p%25@[::1]/m/15", REDIS_SENTINEL, "::1 26379", "u", "p%", 15, "m", "",
            ""},
        {"redis-sentinel://a/m?sentinel_password=p%26@/?", REDIS_SENTINEL, "a 26379", "", "", 0,
            "m", "", "p&@/?"},
        {"redis-sentinel://:d@a/m/3?sentinel_password=s&sentinel_user=w", REDIS_SENTINEL, "a 26379",
            "", "d", 3, "m", "w", "s"},
        {"redis-cluster://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16", REDIS_CLUSTER,
            "1 6379|2 6379|3 6379|4 6379|5 6379|6 6379|7 6379|8 6379|9 6379|10 6379|11 6379|"
            "12 6379|13 6379|14 6379|15 6379|16 6379",
            "", "", 0, "", "", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct redis_url u;
        memset(&u, 0xff, sizeof(u));
        const char *fault = redis_url_parse(cases[i].url, &u);
        cr_assert(fault == NULL, "%s: %s", cases[i].url, fault);
        cr_expect_eq(u.kind, cases[i].kind, "%s", cases[i].url);
        expect_seeds(&u, cases[i].seeds);
        cr_expect_str_eq(u.login.user, cases[i].user, "%s", cases[i].url);
        cr_expect_str_eq(u.login.password, cases[i].password, "%s", cases[i].url);
        cr_expect_eq(u.db, cases[i].db, "%s", cases[i].url);
        cr_expect_str_eq(u.master, cases[i].master, "%s", cases[i].url);
        cr_expect_str_eq(u.sentinel.user, cases[i].sentinel_user, "%s", cases[i].url);
        cr_expect_str_eq(u.sentinel.password, cases[i].sentinel_password, "%s", cases[i].url);
    }
}

/* ---- bad: each sentence by a piece of it ---- */

Test(redis_url_parse, bad)
{
    static const char *const cases[][2] = {
        {"", "a Redis URL is"},
        {"redis-clusters://a", "a Redis URL is"},
        {"REDIS-CLUSTER://a", "a Redis URL is"},
        {"redis-cluster:a", "a Redis URL is"},
        {"redis://h", "needs a port"},
        {"unix:", "unix socket"},
        {"redis-cluster://", "host is missing"},
        {"redis-cluster://a,", "host is missing"},
        {"redis-cluster://,a", "host is missing"},
        {"redis-cluster://a,,b", "host is missing"},
        {"redis-cluster://:6379", "host is missing"},
        {"redis-cluster://u:p@", "host is missing"},
        {"redis-sentinel:///m", "host is missing"},
        {"redis-cluster://a:0", "a port is 1"},
        {"redis-cluster://a:65536", "a port is 1"},
        {"redis-cluster://a:", "a port is 1"},
        {"redis-cluster://a:b:1", "a port is 1"},
        {"redis-cluster://::1", "host is missing"},
        {"redis-cluster://fe80::1", "IPv6 address in brackets"},
        {"redis-cluster://[::1", "IPv6 address in brackets"},
        {"redis-cluster://[]", "IPv6 address in brackets"},
        {"redis-cluster://[::1]x", "IPv6 address in brackets"},
        {"redis-cluster://a b", "a host is a name"},
        {"redis-cluster://a,b?c=1", "a host is a name"},
        {"redis-cluster://a#", "a host is a name"},
        {"redis-cluster://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "more than 16"},
        {"redis-cluster://a,b:1,A:6379", "twice"},
        {"redis-sentinel://a,b,a:26379/m", "twice"},
        {"redis-cluster://u@a", "user:password"},
        {"redis-cluster://u:p@q@a", "user:password"},
        {"redis-cluster://u:p/q@a", "user:password"},
        {"redis-sentinel://u:p/q@a/m", "user:password"},
        {"redis-cluster://u:p%4@a", "user:password"},
        {"redis-cluster://u:p%00@a", "user:password"},
        {"redis-cluster://u:p q@a", "user:password"},
        {"redis-cluster://a/0", "no databases"},
        {"redis-cluster://a/", "no databases"},
        {"redis-cluster://a,b:2/master", "no databases"},
        {"redis-sentinel://a", "name of the master"},
        {"redis-sentinel://a,b:1/", "name of the master"},
        {"redis-sentinel://a//1", "name of the master"},
        {"redis-sentinel://a/?sentinel_user=u", "name of the master"},
        {"redis-sentinel://a?sentinel_user=u/m", "a host is a name"},
        {"redis-sentinel://a/m m", "letters, digits"},
        {"redis-sentinel://a/m%20m", "letters, digits"},
        {"redis-sentinel://a/m/", "a database is"},
        {"redis-sentinel://a/m/x", "a database is"},
        {"redis-sentinel://a/m/1/2", "a database is"},
        {"redis-sentinel://a/m/100001", "a database is"},
        {"redis-sentinel://a/m?", "behind the ?"},
        {"redis-sentinel://a/m?user=x", "behind the ?"},
        {"redis-sentinel://a/m?sentinel_password", "behind the ?"},
        {"redis-sentinel://a/m?sentinel_password=a&", "behind the ?"},
        {"redis-sentinel://a/m?sentinel_password=a&sentinel_password=b", "behind the ?"},
        {"redis-sentinel://a/m?sentinel_password=%zz", "behind the ?"},
        {"redis-sentinel://a/m?Sentinel_user=u&sentinel_password=b", "behind the ?"},
        {"redis-sentinel://a/m?sentinel_user=u", "needs sentinel_password="},
        {"redis-sentinel://a/m?sentinel_user=u&sentinel_password=", "needs sentinel_password="},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct redis_url u = {.db = 4711};
        const char *fault = redis_url_parse(cases[i][0], &u);
        cr_expect(fault != NULL && strstr(fault, cases[i][1]) != NULL, "%s: %s", cases[i][0],
            fault == NULL ? "taken" : fault);
        cr_expect_eq(u.db, 4711, "%s: written to", cases[i][0]);
    }
}

/* ---- as long as it may be, and a byte more ---- */

static void check_length(const char *before, size_t n, const char *after, bool good)
{
    char url[600];
    struct redis_url u;
    int at = snprintf(url, sizeof(url), "%s", before);
    memset(url + at, 'x', n);
    snprintf(url + (size_t)at + n, sizeof(url) - (size_t)at - n, "%s", after);
    cr_expect_eq(redis_url_parse(url, &u) == NULL, good, "%s..%s: %zu", before, after, n);
}

Test(redis_url_parse, lengths)
{
    const struct redis_url u = {.kind = REDIS_ONE};
    const struct {
        const char *before;
        size_t room;
        const char *after;
    } cases[] = {{"redis-cluster://a,", sizeof(u.seeds[0].host), ":1,b"},
        {"redis-sentinel://a/", sizeof(u.master), "/1"},
        {"redis-sentinel://a/m?sentinel_password=p&sentinel_user=", sizeof(u.sentinel.user), ""},
        {"redis-sentinel://a/m?sentinel_password=", sizeof(u.sentinel.password),
            "&sentinel_user=u"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check_length(cases[i].before, cases[i].room - 1, cases[i].after, true);
        check_length(cases[i].before, cases[i].room, cases[i].after, false);
    }
}

/* ---- the servers of a URL ---- */

Test(redis_url_parse, each_kind_of_server_has_its_own_login)
{
    struct redis_url u;
    struct redis_endpoint server, sentinel;
    const struct redis_address found = {.host = "10.0.0.2", .port = 7000};

    cr_assert(redis_url_parse(
                  "redis-sentinel://d:1@a/m/3?sentinel_user=s&sentinel_password=2", &u) == NULL);
    server = redis_endpoint_of_server(&u, &found);
    sentinel = redis_endpoint_of_sentinel(&u, &u.seeds[0]);
    cr_expect_str_eq(server.address.host, "10.0.0.2");
    cr_expect_eq(server.address.port, 7000);
    cr_expect_str_eq(server.login.user, "d");
    cr_expect_str_eq(server.login.password, "1");
    cr_expect_eq(server.db, 3);
    cr_expect_str_eq(sentinel.address.host, "a");
    cr_expect_eq(sentinel.address.port, 26379);
    cr_expect_str_eq(sentinel.login.user, "s");
    cr_expect_str_eq(sentinel.login.password, "2");
    cr_expect_eq(sentinel.db, 0);
}
