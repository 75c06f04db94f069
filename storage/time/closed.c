#include "storage/time/closed.h"

#include "storage/base/buffer.h"

size_t rollup_state_print(const struct rollup_state *state, char *text)
{
    static const enum level levels[] = {LEVEL_HOUR, LEVEL_DAY, LEVEL_MONTH};
    size_t n = 0; /* six numbers of at most 20 bytes and five blanks always fit */
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        if (i > 0) {
            text[n++] = ' ';
        }
        n += decimal_print(state->writers_s[levels[i]], text + n);
        text[n++] = ' ';
        n += decimal_print(state->readers_s[levels[i]], text + n);
    }
    text[n] = '\0';
    return n;
}

/* Cut a decimal number off the front of @rest.  Takes only the form that rollup_state_print() gives
 * it: no plus sign, no leading zeros, no -0.  The text came over the network and is not trusted. */
static bool take_number(struct slice *rest, int64_t *ret)
{
    bool negative = rest->n > 0 && rest->p[0] == '-';
    size_t first = negative;
    size_t i = first;
    int64_t value = 0; /* kept at or below zero: INT64_MIN has no positive twin */
    for (; i < rest->n && rest->p[i] >= '0' && rest->p[i] <= '9'; i++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, rest->p[i] - '0', &value)) {
            return false;
        }
    }
    if (i == first || (rest->p[first] == '0' && (i > first + 1 || negative))) {
        return false;
    }
    if (!negative && __builtin_sub_overflow(0, value, &value)) {
        return false;
    }
    *ret = value;
    rest->p += i;
    rest->n -= i;
    return true;
}

bool rollup_state_parse(struct slice text, struct rollup_state *ret)
{
    struct rollup_state state = {{0}, {0}};
    int64_t bound_s =
        INT64_MAX; /* in the order of the text, no instant is later than the one before */
    for (enum level level = LEVEL_HOUR; level <= LEVEL_MONTH; level++) {
        int64_t *c = &state.writers_s[level];
        int64_t *w = &state.readers_s[level];
        if (level != LEVEL_HOUR && !slice_take(&text, ' ')) {
            return false;
        }
        if (!take_number(&text, c) || !slice_take(&text, ' ') || !take_number(&text, w)) {
            return false;
        }
        if (*c > bound_s || *w > *c) {
            return false;
        }
        bound_s = *w;
    }
    if (text.n != 0) {
        return false;
    }
    *ret = state;
    return true;
}

struct rollup_state rollup_state_initial(int64_t now_s)
{
    struct rollup_state state = {{0}, {0}};
    for (enum level level = LEVEL_HOUR; level <= LEVEL_MONTH; level++) {
        state.writers_s[level] = bucket_at(zone_utc(), level, now_s).start_s;
        state.readers_s[level] = state.writers_s[level];
    }
    return state;
}
