#include "service/options/limit_option.h"

#include <stddef.h>
#include <string.h>

#include "service/options/option_value.h"

#define WORDS_MAX 4
#define WORD_SIZE 32

static const char form[] = "must be `funnel COUNT/PERIOD [burst N]` or `sliding COUNT/PERIOD`, as "
                           "funnel 5/60s burst 4";
static const char rate_form[] = "must be COUNT/PERIOD, as 1000/1s or 5/500ms";

static const char *check(const struct limit *limit)
{
    enum limit_part part;
    const char *fault = limit_check(limit, &part);
    if (fault == NULL) {
        return NULL;
    }
    switch (part) {
    case LIMIT_PART_COUNT:
        return limit->algorithm == LIMIT_SLIDING ? "COUNT must be from 1 to 10000"
                                                 : "COUNT must be from 1 to 1000000000";
    case LIMIT_PART_PERIOD:
        return "PERIOD must be from 1ms to 366d";
    case LIMIT_PART_BURST:
        break;
    }
    return "the burst must be from 0 to 1000000000, and not too large to be counted exactly";
}

static const char *read_rate(const char *text, struct limit *limit)
{
    char count[WORD_SIZE];
    const char *slash = strchr(text, '/');
    int64_t period_ms;
    if (slash == NULL || (size_t)(slash - text) >= sizeof(count)) {
        return rate_form;
    }
    memcpy(count, text, (size_t)(slash - text));
    count[slash - text] = '\0';
    if (!option_parse_integer(count, &limit->count) ||
        !option_parse_duration(slash + 1, &period_ms) || period_ms > INT64_MAX / 1000) {
        return rate_form;
    }
    limit->period_us = period_ms * 1000;
    return NULL;
}

const char *limit_option_rate(const char *text, struct limit *ret)
{
    *ret = (struct limit){.algorithm = LIMIT_FUNNEL};
    const char *fault = read_rate(text, ret);
    return fault != NULL ? fault : check(ret);
}

/* Split @text into words at blanks.  Returns their number; more than WORDS_MAX if there are more,
 * or if a word is too long. */
static size_t split(const char *text, char words[static WORDS_MAX][WORD_SIZE])
{
    size_t n = 0;
    for (;;) {
        text += strspn(text, " \t");
        size_t length = strcspn(text, " \t");
        if (length == 0) {
            return n;
        }
        if (n == WORDS_MAX || length >= WORD_SIZE) {
            return WORDS_MAX + 1;
        }
        memcpy(words[n], text, length);
        words[n++][length] = '\0';
        text += length;
    }
}

const char *limit_option_policy(const char *text, struct limit *ret)
{
    char words[WORDS_MAX][WORD_SIZE];
    size_t n = split(text, words);
    bool funnel = n >= 1 && strcmp(words[0], "funnel") == 0;
    bool sliding = n >= 1 && strcmp(words[0], "sliding") == 0;
    *ret = (struct limit){.algorithm = sliding ? LIMIT_SLIDING : LIMIT_FUNNEL};
    if (!(funnel && (n == 2 || n == 4)) && !(sliding && n == 2)) {
        return form;
    }
    if (n == 4 &&
        (strcmp(words[2], "burst") != 0 || !option_parse_integer(words[3], &ret->burst))) {
        return form;
    }
    return read_rate(words[1], ret) != NULL ? form : check(ret);
}
