#include "service/options/limit_option.h"

#include <stddef.h>
#include <string.h>

#include "service/options/option_value.h"

#define WORDS_MAX 4
#define WORD_SIZE 32

static const char form[] =
    "must be `funnel COUNT/PERIOD [burst N]` or `sliding COUNT/PERIOD`, or several with ` + ` "
    "between, and at most one `penalty TIME after COUNT/PERIOD`, as funnel 5/60s burst 4";
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

/* A part of a policy, split into words at blanks. */
struct part {
    char words[WORDS_MAX][WORD_SIZE];
    size_t n;
};

_Static_assert(WORDS_MAX *WORD_SIZE <= LIMIT_TEXT_SIZE, "the words of a part fit its text");

/* Split the part at the beginning of @text, up to a '+' or the end.  Returns what is behind the
 * '+', or NULL at the end.  A part with too many or too long words gets no words, and so is
 * refused. */
static const char *split_part(const char *text, struct part *ret)
{
    bool fits = true;
    *ret = (struct part){.n = 0};
    for (text += strspn(text, " \t"); *text != '\0' && *text != '+'; text += strspn(text, " \t")) {
        size_t length = strcspn(text, " \t+");
        fits = fits && ret->n < WORDS_MAX && length < WORD_SIZE;
        if (fits) {
            memcpy(ret->words[ret->n++], text, length);
        }
        text += length;
    }
    ret->n = fits ? ret->n : 0;
    return *text == '+' ? text + 1 : NULL;
}

static void join_words(const struct part *part, char *text)
{
    size_t at = 0;
    for (size_t i = 0; i < part->n; i++) {
        size_t n = strlen(part->words[i]);
        memcpy(text + at, part->words[i], n);
        text[at + n] = ' ';
        at += n + 1;
    }
    text[at - 1] = '\0';
}

static bool has_form(const struct part *part, const char *kind, size_t n, const char *third)
{
    return part->n == n && strcmp(part->words[0], kind) == 0 &&
           (n < 4 || strcmp(part->words[2], third) == 0);
}

static const char *read_limit(const struct part *part, struct limit *limit)
{
    bool sliding = has_form(part, "sliding", 2, NULL);
    bool burst = has_form(part, "funnel", 4, "burst");
    *limit = (struct limit){.algorithm = sliding ? LIMIT_SLIDING : LIMIT_FUNNEL};
    if (!sliding && !burst && !has_form(part, "funnel", 2, NULL)) {
        return form;
    }
    if (burst && !option_parse_integer(part->words[3], &limit->burst)) {
        return form;
    }
    return read_rate(part->words[1], limit) != NULL ? form : check(limit);
}

static const char *read_penalty(const struct part *part, struct limit_penalty *penalty)
{
    struct limit after;
    int64_t lasts_ms;
    if (penalty->refusals > 0) {
        return "must not have two penalties";
    }
    if (!has_form(part, "penalty", 4, "after") || read_rate(part->words[3], &after) != NULL ||
        !option_parse_duration(part->words[1], &lasts_ms) || lasts_ms > INT64_MAX / 1000) {
        return form;
    }
    *penalty = (struct limit_penalty){after.count, after.period_us, lasts_ms * 1000};
    return limit_penalty_check(penalty);
}

static const char *read_part(const struct part *part, struct limit_policy *policy)
{
    struct limit_set *set = &policy->set;
    if (part->n > 0 && strcmp(part->words[0], "penalty") == 0) {
        join_words(part, policy->penalty_text);
        return read_penalty(part, &set->penalty);
    }
    if (part->n == 0 || set->n == LIMIT_SET_MAX) {
        return part->n == 0 ? form : "must not have more than 8 limits";
    }
    join_words(part, policy->limit_text[set->n]);
    return read_limit(part, &set->limits[set->n++]);
}

const char *limit_option_policy(const char *text, struct limit_policy *ret)
{
    const char *fault = NULL;
    struct part part;
    *ret = (struct limit_policy){.name = SLICE("")};
    while (text != NULL && fault == NULL) {
        text = split_part(text, &part);
        fault = read_part(&part, ret);
    }
    return fault == NULL && ret->set.n == 0 ? "must have a limit beside the penalty" : fault;
}
