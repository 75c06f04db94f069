#include "handlers/text/json_text.h"

#include <stdbool.h>
#include <string.h>

#include "handlers/text/utf8.h"

/* A string that is unescaped in place.  An escape is never shorter than what it stands for, so
 * `write` never overtakes `read`. */
struct unescaper {
    char *read;
    char *write;
    const char *end;
    struct json_text *ret;
};

/* Note @fault, unless there is one already: only the first one is told. */
static void set_fault(struct json_text *text, const char *fault)
{
    if (text->fault == NULL) {
        text->fault = fault;
    }
}

/* Read an escaped UTF-16 unit at @p: backslash, u and four hexadecimal digits. */
static bool read_unit(const char *p, const char *end, uint32_t *ret)
{
    if (end - p < 6 || p[0] != '\\' || p[1] != 'u') {
        return false;
    }
    uint32_t unit = 0;
    for (int i = 2; i < 6; i++) {
        int digit = hex_digit(p[i]);
        if (digit < 0) {
            return false;
        }
        unit = unit << 4 | (uint32_t)digit;
    }
    *ret = unit;
    return true;
}

static bool is_high(uint32_t unit)
{
    return unit >= 0xd800 && unit < 0xdc00;
}

static bool is_low(uint32_t unit)
{
    return unit >= 0xdc00 && unit < 0xe000;
}

static void read_unicode(struct unescaper *u)
{
    uint32_t code, low;
    if (!read_unit(u->read, u->end, &code)) {
        u->ret->error = "\\u needs four hexadecimal digits";
        return;
    }
    u->read += 6;
    if (is_high(code) && read_unit(u->read, u->end, &low) && is_low(low)) {
        u->read += 6;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (is_high(code) || is_low(code)) {
        set_fault(u->ret, "half of a surrogate pair");
        return;
    }
    if (code == 0) {
        set_fault(u->ret, "\\u0000 is not allowed");
    }
    u->write += utf8_put(u->write, code);
}

/* What @c means behind a backslash; 0: nothing. */
static char simple_escape(char c)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char *at = memchr(letters, c, sizeof(letters) - 1);
    return at != NULL ? meanings[at - letters] : '\0';
}

static void read_escape(struct unescaper *u)
{
    if (u->end - u->read < 2) {
        u->read++;
        return; /* the caller sees that the input ends, and says so */
    }
    if (u->read[1] == 'u') {
        read_unicode(u);
        return;
    }
    char c = simple_escape(u->read[1]);
    if (c == 0) {
        u->ret->error = "unknown escape";
        return;
    }
    *u->write++ = c;
    u->read += 2;
}

static void move(struct unescaper *u, size_t n)
{
    if (u->write != u->read) {
        memmove(u->write, u->read, n);
    }
    u->write += n;
    u->read += n;
}

static void read_non_ascii(struct unescaper *u)
{
    size_t n = utf8_sequence(u->read, u->end);
    if (n == 0) {
        set_fault(u->ret, "invalid UTF-8");
    }
    move(u, n == 0 ? 1 : n);
}

char *json_text_read(char *start, char *stop, char *end, struct json_text *ret)
{
    struct unescaper u = {.read = stop, .write = stop, .end = end, .ret = ret};
    *ret = (struct json_text){.fault = NULL};
    while (u.read < end && *u.read != '"' && ret->error == NULL) {
        unsigned char c = (unsigned char)*u.read;
        if (c == '\\') {
            read_escape(&u);
        } else if (c >= 0x80) {
            read_non_ascii(&u);
        } else if (c < ' ') {
            ret->error = "a control character in a string must be escaped";
        } else {
            move(&u, (size_t)(json_text_plain(u.read, end) - u.read));
        }
    }
    if (ret->error != NULL) {
        return u.read;
    }
    if (u.read == end) {
        ret->error = "a string is not closed";
        return u.read;
    }
    ret->text = (struct slice){start, (size_t)(u.write - start)};
    return u.read + 1;
}
