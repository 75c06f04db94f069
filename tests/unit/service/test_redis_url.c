#include "service/redis_url.h"

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

/* ---- what is refused ---- */

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
