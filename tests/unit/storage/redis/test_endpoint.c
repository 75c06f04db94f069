/* Where Redis is: redis_endpoint_parse() of endpoint.h. */
#include "storage/redis/endpoint.h"

#include <criterion/criterion.h>
#include <stdio.h>

TestSuite(redis_endpoint, .timeout = 60);

/* ---- good ---- */

Test(redis_endpoint, good)
{
    static const struct {
        const char *url, *host;
        int port;
        const char *user, *password;
        int db;
    } cases[] = {
        {"redis://127.0.0.1:6380", "127.0.0.1", 6380, "", "", 0},
        {"redis://redis.example.org:1/15", "redis.example.org", 1, "", "", 15},
        {"redis://h:1/100000", "h", 1, "", "", 100000},
        {"redis://h:65535/0", "h", 65535, "", "", 0},
        {"redis://[::1]:6379", "::1", 6379, "", "", 0},
        {"redis://[fe80::1%eth0]:7000/2", "fe80::1%eth0", 7000, "", "", 2},
        {"redis://:secret@h:1", "h", 1, "", "secret", 0},
        {"redis://user:secret@h:1", "h", 1, "user", "secret", 0},
        {"redis://user:@h:1", "h", 1, "user", "", 0},
        {"redis://u%3a:p%40%2F%25@h:1", "h", 1, "u:", "p@/%", 0},
        {"redis://u:a:b@h:1", "h", 1, "u", "a:b", 0},
        {"unix:/run/redis.sock", "/run/redis.sock", 0, "", "", 0},
        {"unix:/a@x:1", "/a@x:1", 0, "", "", 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct redis_endpoint e;
        memset(&e, 0xff, sizeof(e));
        cr_assert(redis_endpoint_parse(cases[i].url, &e), "%s", cases[i].url);
        cr_expect_str_eq(e.address.host, cases[i].host, "%s", cases[i].url);
        cr_expect_eq(e.address.port, cases[i].port, "%s: %d", cases[i].url, e.address.port);
        cr_expect_str_eq(e.login.user, cases[i].user, "%s", cases[i].url);
        cr_expect_str_eq(e.login.password, cases[i].password, "%s", cases[i].url);
        cr_expect_eq(e.db, cases[i].db, "%s: %d", cases[i].url, e.db);
    }
}

/* ---- bad ---- */

static void check_bad(const char *url)
{
    struct redis_endpoint e = {.address.port = 4711};
    cr_expect_not(redis_endpoint_parse(url, &e), "%s", url);
    cr_expect_eq(e.address.port, 4711, "%s: written to", url);
}

Test(redis_endpoint, bad)
{
    static const char *const urls[] = {"", "redis", "redis:", "redis:/h", "redis://", "redis:///0",
        "redis://:6379", "rediss://h:1", "REDIS://h:1", " redis://h:1", "http://h:1", "h:6379",
        "redis://h", "redis://h/", "redis://h:", "redis://h:0", "redis://h:65536",
        "redis://h:000001", "redis://h:99999999999999999999", "redis://h:-1", "redis://h:+1",
        "redis://h:1x", "redis://h: 1", "redis://h :1", "redis://h?:1", "redis://h#:1",
        "redis://a:b:1", "redis://::1", "redis://[::1", "redis://[::1]", "redis://[]",
        "redis://[]:1", "redis://[::1]1", "redis://[::1]:", "redis://h:1/", "redis://h:1/x",
        "redis://h:1/-1", "redis://h:1/1/", "redis://h:1/1x", "redis://h:1/100001",
        "redis://h:1/99999999999", "redis://user@h:1", "redis://@h:1", "redis://u:p@",
        "redis://u:p@:1", "redis://u:p%@h:1", "redis://u:p%4@h:1", "redis://u:p%4g@h:1",
        "redis://u:p%00@h:1", "redis://u%00:p@h:1", "redis://u:a@b@h:1", "redis://u:a/b@h:1/3",
        "redis://u:a b@h:1", "unix:", "unix:relative"};
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        check_bad(urls[i]);
    }
}

/* ---- as long as it may be, and a byte more ---- */

static void check_length(const char *before, size_t n, const char *after, bool good)
{
    char url[600];
    struct redis_endpoint e;
    int at = snprintf(url, sizeof(url), "%s", before);
    memset(url + at, 'x', n);
    snprintf(url + (size_t)at + n, sizeof(url) - (size_t)at - n, "%s", after);
    cr_expect_eq(redis_endpoint_parse(url, &e), good, "%s..%s: %zu", before, after, n);
}

Test(redis_endpoint, lengths)
{
    const struct redis_endpoint e = {0};
    const struct {
        const char *before;
        size_t room;
        const char *after;
    } cases[] = {{"unix:/", 108 - 1, ""}, {"redis://", sizeof(e.address.host), ":1/0"},
        {"redis://[", sizeof(e.address.host), "]:1"}, {"redis://", sizeof(e.login.user), ":p@h:1"},
        {"redis://u:", sizeof(e.login.password), "@h:1"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check_length(cases[i].before, cases[i].room - 1, cases[i].after, true);
        check_length(cases[i].before, cases[i].room, cases[i].after, false);
    }
}
