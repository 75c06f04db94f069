#include "tests/lib/resp_words.h"

#include <stdlib.h>

/* A decimal number in the one form that decimal_print gives it. */
static bool canonical(struct slice text, int64_t *ret)
{
    bool negative = text.n > 0 && text.p[0] == '-';
    size_t first = negative ? 1 : 0;
    int64_t value = 0;
    if (text.n == first || text.n > 19 + first ||
        (text.p[first] == '0' && (negative || text.n > 1))) {
        return false;
    }
    for (size_t i = first; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '9' ||
            __builtin_mul_overflow(value, (int64_t)10, &value) ||
            __builtin_sub_overflow(value, (int64_t)(text.p[i] - '0'), &value)) {
            return false;
        }
    }
    return negative ? (*ret = value, true) : !__builtin_sub_overflow((int64_t)0, value, ret);
}

/* A word at *at, which moves behind it. */
static bool scan_word(const struct buffer *b, size_t *at, struct slice *ret)
{
    int64_t n;
    const char *head = b->p + *at;
    const char *cr = memchr(head, '\r', b->n - *at);
    if (*head != '$' || cr == NULL ||
        !canonical((struct slice){head + 1, (size_t)(cr - head - 1)}, &n)) {
        return false;
    }
    size_t start = (size_t)(cr + 2 - b->p);
    if (n < 0 || start > b->n || cr[1] != '\n' || b->n - start < (size_t)n + 2 ||
        memcmp(b->p + start + n, "\r\n", 2) != 0) {
        return false;
    }
    *ret = (struct slice){b->p + start, (size_t)n};
    *at = start + (size_t)n + 2;
    return true;
}

bool resp_words_read(const struct buffer *b, struct resp_words *ret)
{
    size_t at = 0;
    *ret = (struct resp_words){0};
    if (b->failed) {
        return false;
    }
    ret->words = calloc(b->n / 5 + 1, sizeof(*ret->words)); /* "$0\r\n\r\n" is the shortest */
    while (ret->words != NULL && at < b->n) {
        if (!scan_word(b, &at, &ret->words[ret->n])) {
            return false;
        }
        ret->n++;
    }
    return ret->words != NULL;
}

void resp_words_release(struct resp_words *words)
{
    free(words->words);
    *words = (struct resp_words){0};
}

struct slice resp_words_take(struct resp_words *words)
{
    if (words->next >= words->n) {
        words->failed = true;
        return (struct slice){"", 0};
    }
    return words->words[words->next++];
}

int64_t resp_words_number(struct resp_words *words)
{
    int64_t value = 0;
    if (!canonical(resp_words_take(words), &value)) {
        words->failed = true;
        return 0;
    }
    return value;
}

bool resp_words_over(const struct resp_words *words)
{
    return !words->failed && words->next == words->n;
}
