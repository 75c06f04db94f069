/* slice.h - a piece of somebody else's bytes.
 *
 * Layer: storage, at the bottom: every layer may use it.  Pure, thread-safe.
 *
 * A slice is a pointer and a length.  It owns nothing and has no NUL at its end.  It lives as long
 * as the memory that it points into.  A structure that holds a slice says whose memory that is.
 */
#ifndef STORAGE_BASE_SLICE_H
#define STORAGE_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct slice {
    const char *p; /* may be NULL when n is 0 */
    size_t n;      /* bytes */
};

/* A string literal as a slice. */
#define SLICE(literal) ((struct slice){(literal), sizeof(literal) - 1})

/* A C string as a slice, which lives as long as @text. */
static inline struct slice slice_of(const char *text)
{
    return (struct slice){text, strlen(text)};
}

static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* The order of @a and @b, byte by byte as memcmp(); if one begins with the other, the shorter one
 * comes first. */
static inline int slice_compare(struct slice a, struct slice b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int order = n == 0 ? 0 : memcmp(a.p, b.p, n);
    return order != 0 ? order : (a.n > b.n) - (a.n < b.n);
}

/* Take @c off the front of @text.  False: it is not there. */
static inline bool slice_take(struct slice *text, char c)
{
    if (text->n == 0 || *text->p != c) {
        return false;
    }
    *text = (struct slice){text->p + 1, text->n - 1};
    return true;
}

/* Take a decimal number off the front of @text.  False: there is none, or it has more than 18
 * digits, so that sums of such numbers might overflow. */
static inline bool slice_take_number(struct slice *text, uint64_t *ret)
{
    uint64_t value = 0;
    size_t n = 0;
    while (n < text->n && n <= 18 && text->p[n] >= '0' && text->p[n] <= '9') {
        value = value * 10 + (uint64_t)(text->p[n++] - '0');
    }
    if (n == 0 || n > 18) {
        return false;
    }
    *text = (struct slice){text->p + n, text->n - n};
    *ret = value;
    return true;
}

/* Does @text begin with @head? */
static inline bool slice_begins(struct slice text, struct slice head)
{
    return text.n >= head.n && slice_equal((struct slice){text.p, head.n}, head);
}

/* Cut the bytes before the first @end off the front of @rest, and that @end, too.  False: there is
 * no @end, and nothing is cut; *ret is untouched. */
static inline bool slice_take_until(struct slice *rest, char end, struct slice *ret)
{
    const char *at = rest->n > 0 ? (const char *)memchr(rest->p, end, rest->n) : NULL;
    if (at == NULL) {
        return false;
    }
    size_t n = (size_t)(at - rest->p);
    *ret = (struct slice){rest->p, n};
    *rest = (struct slice){at + 1, rest->n - n - 1};
    return true;
}

/* Cut the bytes before the first @end off the front of @rest, and that @end, too; without an @end
 * all bytes are cut.  Returns the bytes before the @end. */
static inline struct slice slice_until(struct slice *rest, char end)
{
    struct slice head = *rest;
    if (!slice_take_until(rest, end, &head)) {
        rest->n = 0;
    }
    return head;
}

/* @text without the bytes at both its ends that occur in @blanks, a C string. */
static inline struct slice slice_trim(struct slice text, const char *blanks)
{
    while (text.n > 0 && text.p[0] != '\0' && strchr(blanks, text.p[0]) != NULL) {
        text = (struct slice){text.p + 1, text.n - 1};
    }
    while (text.n > 0 && text.p[text.n - 1] != '\0' && strchr(blanks, text.p[text.n - 1]) != NULL) {
        text.n--;
    }
    return text;
}

/* The value of a hexadecimal digit, -1 for any other character. */
static inline int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

#endif
