#include "service/options/redis_url.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(redis_url, .timeout = 60);

/* ---- what works ---- */

Test(redis_url, good_and_masked)
{
    static const char *const cases[][2] = {{"", ""}, {"redis://h:6379", "redis://h:6379"},
        {"redis://[::1]:6379/15", "redis://[::1]:6379/15"}, {"unix:/a/b@c:d", "unix:/a/b@c:d"},
        {"redis://u:p@h:1", "redis://u:***@h:1"}, {"redis://:p%40:q@h:1/0", "redis://:***@h:1/0"}};
    char text[64];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cr_expect(redis_url_check(cases[i][0]) == NULL, "%s", cases[i][0]);
        redis_url_mask(cases[i][0], text, sizeof(text));
        cr_expect_str_eq(text, cases[i][1]);
    }
}

Test(redis_url, partitions_are_more_in_a_cluster)
{
    cr_expect_eq(redis_url_partitions(""), 16);
    cr_expect_eq(redis_url_partitions("unix:/redis-cluster://a"), 16);
    cr_expect_eq(redis_url_partitions("redis://redis-cluster:1"), 16);
    cr_expect_eq(redis_url_partitions("redis-sentinel://a:1/m"), 16);
    cr_expect_eq(redis_url_partitions("redis-cluster://a:1,b:2"), 256);
}

Test(redis_url, several_servers_are_masked)
{
    static const char *const cases[][2] = {{"redis-cluster://a:1,b:2", "redis-cluster://a:1,b:2"},
        {"redis-cluster://u:s%40,cret@a:1,[::1]", "redis-cluster://u:***@a:1,[::1]"},
        {"redis-sentinel://:s3cret@a,b/m/2", "redis-sentinel://:***@a,b/m/2"},
        {"redis-sentinel://a/m?sentinel_password=s3@cret",
            "redis-sentinel://a/m?sentinel_password=***"},
        {"redis-sentinel://u:s@a/m?sentinel_password=cret&sentinel_user=w",
            "redis-sentinel://u:***@a/m?sentinel_password=***&sentinel_user=w"},
        {"redis-sentinel://a/m?sentinel_user=?sentinel_password=w&sentinel_password=cret",
            "redis-sentinel://a/m?sentinel_user=?sentinel_password=w&sentinel_password=***"},
        {"redis-sentinel://u:s@a/m?sentinel_user=w&sentinel_password=cret",
            "redis-sentinel://u:***@a/m?sentinel_user=w&sentinel_password=***"}};
    char text[100];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cr_expect_null(redis_url_check(cases[i][0]), "%s", cases[i][0]);
        redis_url_mask(cases[i][0], text, sizeof(text));
        cr_expect_str_eq(text, cases[i][1]);
    }
    cr_expect_not_null(redis_url_list_check("redis-sentinel://a/m"));
    redis_url_mask(cases[4][0], text, 24);
    cr_expect_str_eq(text, "redis-sentinel://u:***@");
}

Test(redis_url, malformed_ones_of_several_servers_say_why_and_show_no_password)
{
    static const char *const cases[][2] = {{"redis-cluster://u:s3cret@a/1", "no databases"},
        {"redis-cluster://u:s3/cret@a", "user:password"},
        {"redis-sentinel://a/m?sentinel_password=s3cret&x=1", "sentinel_password="},
        {"redis-sentinel://u:s3cret@a", "name of the master"}};
    char text[100];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *fault = redis_url_check(cases[i][0]);
        cr_expect(fault != NULL && strstr(fault, cases[i][1]) != NULL, "%s", cases[i][0]);
        redis_url_mask(cases[i][0], text, sizeof(text));
        cr_expect(strstr(text, "s3") == NULL && strstr(text, "cret") == NULL, "%s", text);
    }
}

/* ---- what is refused ---- */

Test(redis_url, each_fault_has_its_own_sentence)
{
    static const char *const rows[][2] = {{"rediss://h:1", "no TLS"}, {"redis://h", "needs a port"},
        {"unix:rel", "absolute path"}, {"redis://h:1/x", "a database is"},
        {"http://h:1", "a Redis URL is"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *fault = redis_url_check(rows[i][0]);
        cr_expect(fault != NULL && strstr(fault, rows[i][1]) != NULL, "%s", rows[i][0]);
    }
}

Test(redis_url, refused)
{
    static const char *const urls[] = {"redis://", "redis://h", "redis://h:", "redis://h:0",
        "redis://h:65536", "redis://h:1/x", "redis://h:1/", "redis://h:1/100001", "redis://:1",
        "redis://u@h:1", "redis://u:p%4@h:1", "redis://a:b:1", "redis://[]:1", "redis://[::1]",
        "unix:", "unix:/", "unix:rel", "unix://a", "http://h:1", "h:1", "redis://h:000001"};
    char path[160] = "unix:/";

    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        cr_expect(redis_url_check(urls[i]) != NULL, "%s", urls[i]);
    }
    memset(path + 6, 'a', 106);
    cr_expect(redis_url_check(path) == NULL, "107 bytes");
    path[112] = 'a';
    cr_expect(redis_url_check(path) != NULL, "108 bytes");
}

/* ---- lists ---- */

Test(redis_url, lists)
{
    static const char *const good[][2] = {{"", ""}, {"redis://h:1", "redis://h:1"},
        {"redis://a:1,redis://u:p@b:2/3,unix:/c", "redis://a:1,redis://u:***@b:2/3,unix:/c"},
        {"redis://:x%2Cy@a:1,redis://:z@b:1,unix:/c", "redis://:***@a:1,redis://:***@b:1,unix:/c"}};
    static const char *const bad[] = {",", "redis://a:1,", ",redis://a:1",
        "redis://a:1,redis://b:1", "redis://a:1,redis://a:1,unix:/b", "redis://a:1,,unix:/b",
        "redis://a:1,unix:/b,c", "redis://a:1 ,unix:/b,unix:/c", "redis-cluster://a:1",
        "redis://a:1,unix:/b,redis-cluster://c:1",
        "unix:/0,unix:/1,unix:/2,unix:/3,unix:/4,unix:/5,unix:/6,"
        "unix:/7,unix:/8,unix:/9"};
    char text[80];

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        cr_expect(redis_url_list_check(good[i][0]) == NULL, "%s", good[i][0]);
        redis_url_mask(good[i][0], text, sizeof(text));
        cr_expect_str_eq(text, good[i][1]);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cr_expect(redis_url_list_check(bad[i]) != NULL, "%s", bad[i]);
    }
}

Test(redis_url, a_broken_list_shows_no_password)
{
    static const char *const lists[] = {"redis://u:s3cret@a:1,redis://u:s3cret@b",
        "redis://u:s3cret@a:1,redis://u:s3cret@b:1", "redis://u:s3,cret@a:1x,unix:/b,unix:/c"};
    char text[80];

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        redis_url_mask(lists[i], text, sizeof(text));
        cr_expect(strstr(text, "s3") == NULL && strstr(text, "cret") == NULL, "%s", text);
    }
}

Test(redis_url, a_list_is_cut_to_fit)
{
    char text[20];

    redis_url_mask("unix:/aaaaaaaa,unix:/bbbbbbbb,unix:/c", text, sizeof(text));
    cr_expect_str_eq(text, "unix:/aaaaaaaa,unix");
}
