#include "handlers/dimension/source.h"

#include <criterion/criterion.h>
#include <string.h>

static void check(const char *url, const char *expected)
{
    char room[SOURCE_HOST_MAX];
    struct slice host;
    bool is = source_host(slice_of(url), room, &host);
    cr_expect(is == (expected != NULL), "%s", url);
    if (is && expected != NULL) {
        struct slice name = source_name(host);
        cr_expect(slice_equal(name, slice_of(expected)), "%s is %.*s", url, (int)name.n, name.p);
    }
}

Test(source, a_host_speaks_for_itself)
{
    check("https://blog.example.org/a?b#c", "blog.example.org");
    check("http://WWW.Example.ORG:8080/", "example.org");
    check("https://user:secret@www.example.org./x", "example.org");
    check("https://www.www.example/", "www.example");
    check("http://192.0.2.7:81/", "192.0.2.7");
    check("http://[2001:db8::1]:81/", "[2001:db8::1]");
    check("https://b\xc3\xbc"
          "cher.example/",
        "b\xc3\xbc"
        "cher.example");
    check("https://www./", "www");
}

Test(source, the_well_known_have_one_name)
{
    check("https://www.google.com/", "google");
    check("https://www.google.de/search?q=a", "google");
    check("http://google.co.uk", "google");
    check("https://news.google.com/", "news.google.com");
    check("https://google.example.org/", "google.example.org");
    check("https://notgoogle.com/", "notgoogle.com");
    check("android-app://com.google.android.googlequicksearchbox/", "google");
    check("https://t.co/abc", "twitter");
    check("https://x.com/", "twitter");
    check("https://l.facebook.com/l.php?u=", "facebook");
    check("https://old.reddit.com/r/c", "reddit");
    check("https://news.ycombinator.com/item?id=1", "hacker news");
    check("https://de.search.yahoo.com/", "de.search.yahoo.com");
    check("https://search.yahoo.co.jp/", "yahoo");
    check("https://yandex.com.tr/", "yandex");
    check("https://duckduckgo.com/", "duckduckgo");
    check("https://baidu.com/", "baidu");
    check("https://youtube.com/", "youtube");
}

Test(source, what_is_no_source)
{
    static const char *const rows[] = {"", "example.org", "/a", "ftp://a.example/", "https://",
        "https:///a", "mailto:a@b.example", "https://a b/", "https://a%20b/", "https://[::1/",
        "javascript://x/", "https://www.:80@/", "http://.", "http://a\x01.example/",
        "https://b\xff.example/", "https://\xc3/", "https://a.example\xe2\x82:80/"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check(rows[i], NULL);
    }
}

Test(source, a_name_that_is_too_long_is_none)
{
    char url[400] = "https://";
    memset(url + 8, 'a', SOURCE_HOST_MAX);
    char room[SOURCE_HOST_MAX];
    struct slice host;
    cr_expect(source_host((struct slice){url, 8 + SOURCE_HOST_MAX}, room, &host));
    cr_expect(host.n == SOURCE_HOST_MAX);
    url[8 + SOURCE_HOST_MAX] = 'a';
    cr_expect_not(source_host((struct slice){url, 9 + SOURCE_HOST_MAX}, room, &host));
}
