/* fuzz_limit_option.c - a policy of the configuration file: what is accepted keeps the rules, and
 * its parts, put together again, are the same policy. */
#include "service/options/limit_option.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Unlike assert(), not lost with NDEBUG. */
static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

static void check_text(const char *text)
{
    size_t n = strlen(text);
    require(n > 0 && n < LIMIT_TEXT_SIZE && text[n - 1] != ' ');
    for (size_t i = 0; i < n; i++) {
        require(text[i] >= ' ' && text[i] <= '~' && text[i] != '"' && text[i] != '\\');
    }
}

static void check_policy(const struct limit_policy *policy)
{
    const struct limit_set *set = &policy->set;
    char joined[(LIMIT_SET_MAX + 1) * (LIMIT_TEXT_SIZE + 3)] = "";
    size_t n = 0;
    enum limit_part part;
    struct limit_policy again;
    require(set->n >= 1 && set->n <= LIMIT_SET_MAX);
    for (size_t i = 0; i < set->n; i++) {
        require(limit_check(&set->limits[i], &part) == NULL);
        check_text(policy->limit_text[i]);
        n += (size_t)snprintf(
            joined + n, sizeof(joined) - n, "%s%s", i == 0 ? "" : " + ", policy->limit_text[i]);
    }
    if (set->penalty.refusals != 0) {
        require(limit_penalty_check(&set->penalty) == NULL);
        check_text(policy->penalty_text);
        (void)snprintf(joined + n, sizeof(joined) - n, " + %s", policy->penalty_text);
    }
    require(limit_option_policy(joined, &again) == NULL);
    require(again.set.n == set->n && again.set.penalty.refusals == set->penalty.refusals);
    for (size_t i = 0; i < set->n; i++) {
        const struct limit *a = &again.set.limits[i], *b = &set->limits[i];
        require(a->algorithm == b->algorithm && a->count == b->count);
        require(a->period_us == b->period_us && a->burst == b->burst);
    }
    require(memcmp(again.limit_text, policy->limit_text, sizeof(again.limit_text)) == 0);
    require(memcmp(again.penalty_text, policy->penalty_text, sizeof(again.penalty_text)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct limit_policy policy;
    struct limit rate;
    enum limit_part part;
    char *text = malloc(size + 1); /* of exactly this size: reading past it is seen */
    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    const char *fault = limit_option_policy(text, &policy);
    if (fault == NULL) {
        check_policy(&policy);
    } else {
        require(fault[0] != '\0');
    }
    if (limit_option_rate(text, &rate) == NULL) {
        require(limit_check(&rate, &part) == NULL && rate.algorithm == LIMIT_FUNNEL);
    }
    free(text);
    return 0;
}
