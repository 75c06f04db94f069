#include "storage/redis/resp.h"

#include <stdarg.h>
#include <string.h>

static void append_count(struct buffer *b, char sign, size_t n)
{
    char text[32];
    text[0] = sign;
    size_t length = 1 + decimal_print((int64_t)n, text + 1);
    text[length++] = '\r';
    text[length++] = '\n';
    buffer_append(b, text, length);
}

void resp_head(struct buffer *b, size_t n)
{
    append_count(b, '*', n);
}

void resp_word(struct buffer *b, const void *bytes, size_t n)
{
    append_count(b, '$', n);
    buffer_append(b, bytes, n);
    buffer_append(b, "\r\n", 2);
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
