/* buffer.h - bytes that grow.
 *
 * Layer: storage, pure.  One owner.  A failed allocation sets `failed` and drops what is appended
 * from then on, so that a caller checks once, before the bytes are used.  buffer_init allocates
 * nothing.
 */
#ifndef STORAGE_BASE_BUFFER_H
#define STORAGE_BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/slice.h"

struct buffer {
    char *p;
    size_t n, capacity;
    bool failed;
};

void buffer_init(struct buffer *b);
void buffer_release(struct buffer *b);
/* Empty it; memory beyond @keep bytes is given back. */
void buffer_clear(struct buffer *b, size_t keep);
/* Make room for @n more bytes and return where they go, or NULL. */
char *buffer_grow(struct buffer *b, size_t n);
void buffer_append(struct buffer *b, const void *bytes, size_t n);
void buffer_text(struct buffer *b, const char *text);
void buffer_decimal(struct buffer *b, int64_t value);

/* Decimal digits of @value into @text (21 bytes or more, no NUL); returns their number. */
size_t decimal_print(int64_t value, char *text);

#endif
