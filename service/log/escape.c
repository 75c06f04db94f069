#include "service/log/escape.h"

#include "handlers/text/utf8.h"

/* Is this U+061C, U+200E, U+200F, U+202A to U+202E, or U+2066 to U+2069? */
static bool is_direction(const unsigned char *p, size_t length)
{
    if (length == 2) {
        return p[0] == 0xd8 && p[1] == 0x9c;
    }
    return length == 3 && p[0] == 0xe2 &&
           ((p[1] == 0x80 && (p[2] == 0x8e || p[2] == 0x8f || (p[2] >= 0xaa && p[2] <= 0xae))) ||
               (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9));
}

static bool is_control(const unsigned char *p, size_t length)
{
    return (length == 1 && (p[0] < 0x20 || p[0] == 0x7f)) ||
           (length == 2 && p[0] == 0xc2 && p[1] < 0xa0) || is_direction(p, length);
}

size_t escape_control(struct slice text)
{
    const unsigned char *p = (const unsigned char *)text.p;
    size_t length = text.n > 0 ? utf8_sequence(text.p, text.p + text.n) : 0;
    return is_control(p, length) ? length : 0;
}

void escape_print(const char *text, FILE *out)
{
    struct slice rest = slice_of(text);
    while (rest.n > 0) {
        size_t control = escape_control(rest), n = control > 0 ? control : 1;
        fputc(control > 0 ? '?' : rest.p[0], out);
        rest = (struct slice){rest.p + n, rest.n - n};
    }
}

void escape_in_place(char *text)
{
    for (size_t left = strlen(text); left > 0;) {
        size_t control = escape_control((struct slice){text, left}), n = control > 0 ? control : 1;
        if (control > 0) {
            memset(text, '?', n);
        }
        text += n;
        left -= n;
    }
}

/* The code point of a character of up to three bytes. */
static unsigned code_of(const unsigned char *p, size_t length)
{
    return length == 1   ? p[0]
           : length == 2 ? (p[0] & 0x1fU) << 6 | (p[1] & 0x3fU)
                         : (p[0] & 0xfU) << 12 | (p[1] & 0x3fU) << 6 | (p[2] & 0x3fU);
}

static size_t escape_code(unsigned code, char *out)
{
    static const char hex[] = "0123456789abcdef";
    out[0] = '\\';
    out[1] = 'u';
    for (unsigned i = 0; i < 4; i++) {
        out[2 + i] = hex[code >> (12 - 4 * i) & 0xf];
    }
    return 6;
}

/* Escape the character at @p, @length bytes of UTF-8, or one stray byte if @length is 0. */
static size_t escape_character(const unsigned char *p, size_t length, char *out)
{
    if (length == 0) {
        return escape_code(0xfffd, out);
    }
    static const char plain[] = "\"\\\n\r\t", letters[] = "\"\\nrt";
    const char *at;
    if (length == 1 && p[0] != '\0' && (at = strchr(plain, p[0])) != NULL) {
        out[0] = '\\';
        out[1] = letters[at - plain];
        return 2;
    }
    if (is_control(p, length)) { /* a terminal may obey such a character */
        return escape_code(code_of(p, length), out);
    }
    memcpy(out, p, length);
    return length;
}

size_t escape_text(struct slice text, char *out, size_t room, size_t *ret_taken)
{
    const unsigned char *p = (const unsigned char *)text.p;
    size_t written = 0, taken = 0;
    while (taken < text.n) {
        char character[ESCAPE_CHARACTER];
        size_t length = utf8_sequence(text.p + taken, text.p + text.n);
        size_t n = escape_character(p + taken, length, character);
        if (n > room - written) {
            break;
        }
        memcpy(out + written, character, n);
        written += n;
        taken += length > 0 ? length : 1;
    }
    *ret_taken = taken;
    return written;
}

void escape_string(const char *text, char *out, size_t room)
{
    struct slice all = slice_of(text);
    size_t taken;
    size_t n = escape_text(all, out, room - sizeof("..."), &taken);
    if (taken < all.n) {
        /* The rest may fit where the dots would stand. */
        struct slice rest = {all.p + taken, all.n - taken};
        size_t more, m = escape_text(rest, out + n, sizeof("...") - 1, &more);
        if (more == rest.n) {
            n += m;
        } else {
            memcpy(out + n, "...", 3);
            n += 3;
        }
    }
    out[n] = '\0';
}
