/* buffer.h - bytes that grow.
 *
 * Layer: storage, pure.  Not thread-safe: a buffer has one owner.
 *
 * A caller appends bytes and text, and the buffer makes room for them.  An allocation that fails
 * sets `failed`, and from then on the buffer drops what is appended.  So a caller appends without
 * looking at each result and checks `failed` once, before it uses the bytes.
 */
#ifndef STORAGE_BASE_BUFFER_H
#define STORAGE_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/compiler.h"
#include "storage/base/slice.h"

struct buffer {
    char *p; /* owned; moves when the buffer grows */
    size_t n, capacity;
    bool failed; /* memory was short: the content is not complete */
};

/* Make @b empty.  Allocates nothing. */
void buffer_init(struct buffer *b);

/* Free the bytes.  The buffer is as buffer_init makes it. */
void buffer_release(struct buffer *b);

/* Empty @b and forget a failure.  Memory of up to @keep bytes stays for the next use; a larger
 * piece is freed. */
void buffer_clear(struct buffer *b, size_t keep);

/* Allocate @n bytes for @b, which is empty and without memory yet, in place of growing by doubling.
 * False: out of memory. */
bool buffer_expect(struct buffer *b, size_t n) MUST_CHECK;

/* Append @n bytes that the caller writes, and return where they go.  The pointer is valid until the
 * next append.  NULL: out of memory. */
char *buffer_grow(struct buffer *b, size_t n) MUST_CHECK;

/* Append a copy of the bytes, of the C string, or of the decimal digits of @value. */
void buffer_append(struct buffer *b, const void *bytes, size_t n);
void buffer_text(struct buffer *b, const char *text);
void buffer_decimal(struct buffer *b, int64_t value);

/* Write the decimal digits of @value into @text, which holds 21 bytes or more.  Returns how many
 * bytes were written; no NUL follows them. */
size_t decimal_print(int64_t value, char *text);

/* The value of 1 to 18 decimal digits; @fallback for anything else. */
int64_t decimal_parse(struct slice digits, int64_t fallback);

#endif
