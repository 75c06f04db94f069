#include "handlers/text/url.h"

/* The bytes from @at on up to the first that is one of @stops. */
static struct slice until(struct slice text, size_t at, const char *stops)
{
    size_t end = at;
    while (end < text.n && (text.p[end] == '\0' || strchr(stops, text.p[end]) == NULL)) {
        end++;
    }
    return (struct slice){text.p + at, end - at};
}

bool url_split(struct slice text, struct url *ret)
{
    if (text.n == 0) { /* then the pointer may be NULL */
        return false;
    }
    struct url url = {.scheme = until(text, 0, ":/?#")};
    size_t at = url.scheme.n;
    if (at == 0 || text.n - at < 3 || memcmp(text.p + at, "://", 3) != 0) {
        return false;
    }
    url.authority = until(text, at + 3, "/?#");
    at += 3 + url.authority.n;
    url.path = until(text, at, "?#");
    at += url.path.n;
    at += until(text, at, "#").n;
    url.fragment = (struct slice){text.p + at, text.n - at};
    *ret = url;
    return true;
}

size_t url_unescape(struct slice text, bool plus_is_blank, char *to)
{
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++) {
        int high = text.p[i] == '%' && text.n - i > 2 ? hex_digit(text.p[i + 1]) : -1;
        int low = high >= 0 ? hex_digit(text.p[i + 2]) : -1;
        char c = plus_is_blank && text.p[i] == '+' ? ' ' : text.p[i];
        to[n++] = low >= 0 ? (char)(high * 16 + low) : c;
        i += low >= 0 ? 2 : 0;
    }
    return n;
}
