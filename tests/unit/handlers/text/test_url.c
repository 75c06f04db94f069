#include "handlers/text/url.h"

#include <criterion/criterion.h>

Test(url, parts)
{
    static const struct {
        const char *text, *scheme, *authority, *path, *fragment;
    } rows[] = {
        {"https://a.example/b/c?d=/e#f#g", "https", "a.example", "/b/c", "#f#g"},
        {"http://a:80", "http", "a:80", "", ""},
        {"http://a?b", "http", "a", "", ""},
        {"http://a#/b?c", "http", "a", "", "#/b?c"},
        {"app://", "app", "", "", ""},
        {"file:///x", "file", "", "/x", ""},
        {"x://[::1]:8/ä ", "x", "[::1]:8", "/ä ", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct url url;
        cr_assert(url_split(slice_of(rows[i].text), &url), "%s", rows[i].text);
        cr_expect(slice_equal(url.scheme, slice_of(rows[i].scheme)), "%s", rows[i].text);
        cr_expect(slice_equal(url.authority, slice_of(rows[i].authority)), "%s", rows[i].text);
        cr_expect(slice_equal(url.path, slice_of(rows[i].path)), "%s", rows[i].text);
        cr_expect(slice_equal(url.fragment, slice_of(rows[i].fragment)), "%s", rows[i].text);
    }
}

Test(url, what_is_not_absolute)
{
    static const char *const rows[] = {
        "", "/a", "a", "://a", "http:/a", "http:", "http:/", "?http://a", "#://", "a/b://c"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct url url;
        cr_expect_not(url_split(slice_of(rows[i]), &url), "%s", rows[i]);
    }
}

Test(url, a_nul_is_a_byte_as_any_other)
{
    struct url url;
    cr_assert(url_split(SLICE("http://a/\0b"), &url));
    cr_expect(slice_equal(url.path, SLICE("/\0b")));
}

Test(url, escapes)
{
    static const struct {
        const char *text, *plain, *form;
    } rows[] = {
        {"", "", ""},
        {"a%20b+c", "a b+c", "a b c"},
        {"%c3%BC", "\xc3\xbc", "\xc3\xbc"},
        {"%2541%2B", "%41+", "%41+"},
        {"%", "%", "%"},
        {"%4", "%4", "%4"},
        {"%4g%g4%41", "%4g%g4A", "%4g%g4A"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char to[16];
        size_t n = url_unescape(slice_of(rows[i].text), false, to);
        cr_expect(slice_equal((struct slice){to, n}, slice_of(rows[i].plain)), "%s", rows[i].text);
        n = url_unescape(slice_of(rows[i].text), true, to);
        cr_expect(slice_equal((struct slice){to, n}, slice_of(rows[i].form)), "%s", rows[i].text);
    }
}
