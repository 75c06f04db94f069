#include "handlers/text/utf8.h"

static size_t length_by_lead(unsigned char lead)
{
    if (lead < 0x80) {
        return 1;
    }
    if (lead < 0xc2) { /* a continuation byte, or the lead of an overlong form of ASCII */
        return 0;
    }
    if (lead < 0xe0) {
        return 2;
    }
    if (lead < 0xf0) {
        return 3;
    }
    return lead < 0xf5 ? 4 : 0;
}

/* May the continuation byte @second follow @lead?  Some would make an overlong form, a surrogate,
 * or a code point beyond the last one. */
static bool second_fits(unsigned char lead, unsigned char second)
{
    switch (lead) {
    case 0xe0:
        return second >= 0xa0;
    case 0xed:
        return second <= 0x9f;
    case 0xf0:
        return second >= 0x90;
    case 0xf4:
        return second <= 0x8f;
    default:
        return true;
    }
}

size_t utf8_sequence(const char *p, const char *end)
{
    unsigned char lead = (unsigned char)*p;
    size_t n = length_by_lead(lead);
    if (n > (size_t)(end - p)) {
        return 0;
    }
    for (size_t i = 1; i < n; i++) {
        if (((unsigned char)p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    if (n > 2 && !second_fits(lead, (unsigned char)p[1])) {
        return 0;
    }
    return n;
}

bool utf8_valid(struct slice text)
{
    for (size_t i = 0; i < text.n;) {
        size_t n = utf8_sequence(text.p + i, text.p + text.n);
        if (n == 0) {
            return false;
        }
        i += n;
    }
    return true;
}

size_t utf8_fit(struct slice text, size_t most)
{
    size_t n = text.n < most ? text.n : most;
    while (n > 0 && n < text.n && ((unsigned char)text.p[n] & 0xC0) == 0x80) {
        n--;
    }
    return n;
}

struct slice utf8_without_mark(struct slice text)
{
    return slice_begins(text, SLICE("\xef\xbb\xbf")) ? (struct slice){text.p + 3, text.n - 3}
                                                     : text;
}

bool utf8_is_utf16(struct slice text)
{
    return slice_begins(text, SLICE("\xff\xfe")) || slice_begins(text, SLICE("\xfe\xff"));
}

size_t utf8_put(char *to, uint32_t code)
{
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        to[0] = (char)(0xc0 | code >> 6);
        to[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        to[0] = (char)(0xe0 | code >> 12);
        to[1] = (char)(0x80 | (code >> 6 & 0x3f));
        to[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    to[0] = (char)(0xf0 | code >> 18);
    to[1] = (char)(0x80 | (code >> 12 & 0x3f));
    to[2] = (char)(0x80 | (code >> 6 & 0x3f));
    to[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}
