#include "storage/redis/resp.h"

#include <stdarg.h>
#include <string.h>

/* Write @sign, @n and the end of the line; returns the number of bytes. */
#define HEAD_MAX 32
static size_t resp_print_head(char head[HEAD_MAX], char sign, size_t n)
{
    head[0] = sign;
    size_t length = 1 + decimal_print((int64_t)n, head + 1);
    head[length++] = '\r';
    head[length++] = '\n';
    return length;
}

void resp_head(struct buffer *b, size_t n)
{
    char head[HEAD_MAX];
    buffer_append(b, head, resp_print_head(head, '*', n));
}

/* The buffer grows once for a word: a question names thousands of keys. */
void resp_word(struct buffer *b, const void *bytes, size_t n)
{
    char head[HEAD_MAX];
    size_t length = resp_print_head(head, '$', n);
    char *to = buffer_grow(b, length + n + 2);
    if (to == NULL) {
        return;
    }
    memcpy(to, head, length);
    if (n > 0) {
        memcpy(to + length, bytes, n);
    }
    to[length + n] = '\r';
    to[length + n + 1] = '\n';
}

void resp_slice(struct buffer *b, struct slice word)
{
    resp_word(b, word.p, word.n);
}

void resp_text(struct buffer *b, const char *text)
{
    resp_word(b, text, strlen(text));
}

void resp_decimal(struct buffer *b, int64_t value)
{
    char text[24];
    resp_word(b, text, decimal_print(value, text));
}

void resp_begin(struct buffer *b, const char *name, struct slice key, size_t n)
{
    resp_head(b, 2 + n);
    resp_text(b, name);
    resp_slice(b, key);
}

void resp_command(struct buffer *b, ...)
{
    va_list words;
    size_t n = 0;
    va_start(words, b);
    while (va_arg(words, const char *) != NULL) {
        n++;
    }
    va_end(words);
    resp_head(b, n);
    va_start(words, b);
    for (size_t i = 0; i < n; i++) {
        resp_text(b, va_arg(words, const char *));
    }
    va_end(words);
}
