#include "storage/base/buffer.h"

#include <stdlib.h>

void buffer_init(struct buffer *b)
{
    *b = (struct buffer){0};
}

void buffer_release(struct buffer *b)
{
    free(b->p);
    buffer_init(b);
}

void buffer_clear(struct buffer *b, size_t keep)
{
    if (b->capacity > keep) {
        buffer_release(b);
    }
    b->n = 0;
    b->failed = false;
}

bool buffer_expect(struct buffer *b, size_t n)
{
    if (b->failed || n <= b->capacity) {
        return !b->failed;
    }
    char *p = realloc(b->p, n);
    if (p == NULL) {
        b->failed = true;
        return false;
    }
    b->p = p;
    b->capacity = n;
    return true;
}

static bool buffer_reserve(struct buffer *b, size_t n)
{
    if (b->failed || b->capacity - b->n >= n) {
        return !b->failed;
    }
    size_t capacity = b->capacity == 0 ? 512 : b->capacity * 2;
    while (capacity - b->n < n) {
        capacity *= 2;
    }
    return buffer_expect(b, capacity);
}

char *buffer_grow(struct buffer *b, size_t n)
{
    if (!buffer_reserve(b, n)) {
        return NULL;
    }
    b->n += n;
    return b->p + b->n - n;
}

void buffer_append(struct buffer *b, const void *bytes, size_t n)
{
    if (n > 0 && buffer_reserve(b, n)) {
        memcpy(b->p + b->n, bytes, n);
        b->n += n;
    }
}

void buffer_text(struct buffer *b, const char *text)
{
    buffer_append(b, text, strlen(text));
}

size_t decimal_print(int64_t value, char *text)
{
    char digits[20];
    size_t n = 0;
    size_t at = 0;
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        digits[n++] = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (value < 0) {
        text[at++] = '-';
    }
    while (n > 0) {
        text[at++] = digits[--n];
    }
    return at;
}

int64_t decimal_parse(struct slice digits, int64_t fallback)
{
    uint64_t value;
    return slice_take_number(&digits, &value) && digits.n == 0 ? (int64_t)value : fallback;
}

void buffer_decimal(struct buffer *b, int64_t value)
{
    char text[24];
    buffer_append(b, text, decimal_print(value, text));
}
