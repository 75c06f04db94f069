#include "storage/schema/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "storage/schema/key.h"

#define ZONES_HEAD " zones="
#define SET_HEAD   " set="
#define ID_DIGITS  16

static int print_time(char *text, size_t n, int64_t keep_s)
{
    return keep_s == KEEP_FOREVER ? snprintf(text, n, "-")
                                  : snprintf(text, n, "%lld", (long long)keep_s);
}

void settings_print(unsigned partitions, const struct retention *retention, uint64_t zones_digest,
    char text[SETTINGS_TEXT])
{
    int n = snprintf(text, SETTINGS_TEXT, "schema=%d partitions=%u keep=", KEY_SCHEMA, partitions);
    for (int level = 0; level < LEVELS; level++) {
        n += snprintf(text + n, SETTINGS_TEXT - (size_t)n, "%s", level == 0 ? "" : ",");
        n += print_time(text + n, SETTINGS_TEXT - (size_t)n, retention->keep_s[level]);
    }
    if (zones_digest != 0) {
        (void)snprintf(text + n, SETTINGS_TEXT - (size_t)n, ZONES_HEAD "%016" PRIx64, zones_digest);
    }
}

void settings_put_set(char text[SETTINGS_TEXT], uint64_t set)
{
    size_t n = strlen(text);
    (void)snprintf(text + n, SETTINGS_TEXT - n, SET_HEAD "%016" PRIx64, set);
}

/* Read a time at *at, and move *at behind it. */
static bool scan_time(struct slice text, size_t *at, int64_t *ret)
{
    if (*at < text.n && text.p[*at] == '-') {
        *ret = KEEP_FOREVER;
        (*at)++;
        return true;
    }
    size_t start = *at;
    int64_t value = 0;
    while (*at < text.n && text.p[*at] >= '0' && text.p[*at] <= '9' && *at - start < 18) {
        value = value * 10 + (text.p[(*at)++] - '0');
    }
    *ret = value;
    return *at > start;
}

static bool scan_char(struct slice text, size_t *at, char c)
{
    if (*at >= text.n || text.p[*at] != c) {
        return false;
    }
    (*at)++;
    return true;
}

/* Read @head and the 16 hexadecimal digits behind it, and move *at behind them.  False, with *at
 * untouched: they are not there. */
static bool scan_id(struct slice text, size_t *at, const char *head, uint64_t *ret)
{
    size_t head_n = strlen(head);
    uint64_t id = 0;
    if (text.n - *at < head_n + ID_DIGITS || memcmp(text.p + *at, head, head_n) != 0) {
        return false;
    }
    for (size_t i = 0; i < ID_DIGITS; i++) {
        char c = text.p[*at + head_n + i];
        bool is_digit = c >= '0' && c <= '9';
        if (!is_digit && (c < 'a' || c > 'f')) {
            return false;
        }
        id = id << 4 | (uint64_t)(is_digit ? c - '0' : c - 'a' + 10);
    }
    *at += head_n + ID_DIGITS;
    *ret = id;
    return true;
}

bool settings_set(struct slice text, uint64_t *ret)
{
    size_t n = strlen(SET_HEAD) + ID_DIGITS;
    size_t at = text.n < n ? 0 : text.n - n;
    return scan_id(text, &at, SET_HEAD, ret);
}

bool settings_parse(
    struct slice text, unsigned partitions, struct retention *ret, uint64_t *ret_set)
{
    char head[64];
    uint64_t zones;
    uint64_t set;
    int head_n =
        snprintf(head, sizeof(head), "schema=%d partitions=%u keep=", KEY_SCHEMA, partitions);
    if (text.n < (size_t)head_n || memcmp(text.p, head, (size_t)head_n) != 0) {
        return false;
    }
    struct retention r = {0};
    size_t at = (size_t)head_n;
    for (int level = 0; level < LEVELS; level++) {
        if ((level > 0 && !scan_char(text, &at, ',')) || !scan_time(text, &at, &r.keep_s[level])) {
            return false;
        }
    }
    (void)scan_id(text, &at, ZONES_HEAD, &zones); /* or there are none */
    if (!scan_id(text, &at, SET_HEAD, &set) || at != text.n) {
        return false;
    }
    *ret = r;
    *ret_set = set;
    return true;
}

void kept_print(const struct retention *retention, char text[SETTINGS_TEXT])
{
    int n = 0;
    for (int level = 0; level < LEVELS; level++) {
        n += snprintf(text + n, SETTINGS_TEXT - (size_t)n, "%s%lld ", level == 0 ? "" : " ",
            (long long)retention->until_s[level]);
        n += print_time(text + n, SETTINGS_TEXT - (size_t)n, retention->before_s[level]);
    }
}

bool kept_parse(struct slice text, struct retention *ret)
{
    struct retention r = *ret;
    size_t at = 0;
    for (int level = 0; level < LEVELS; level++) {
        if ((level > 0 && !scan_char(text, &at, ' ')) || !scan_time(text, &at, &r.until_s[level]) ||
            !scan_char(text, &at, ' ') || !scan_time(text, &at, &r.before_s[level])) {
            return false;
        }
    }
    if (at != text.n) {
        return false;
    }
    *ret = r;
    return true;
}

struct retention retention_changed(const struct retention *old, const struct retention *new_times,
    const struct rollup_state *state)
{
    struct retention r = *old;
    for (int level = 0; level < LEVELS; level++) {
        int parent = level == LEVEL_MONTH ? LEVEL_MONTH : level + 1;
        r.keep_s[level] = new_times->keep_s[level];
        if (r.keep_s[level] <= old->keep_s[level]) {
            continue; /* not longer: the new time is in effect for readers at once */
        }
        bool again = old->until_s[level] != 0 && old->before_s[level] < old->keep_s[level];
        r.before_s[level] = again ? old->before_s[level] : old->keep_s[level];
        r.until_s[level] = state->readers_s[parent];
    }
    return r;
}
