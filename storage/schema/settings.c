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

/* Take a time off the front of @text. */
static bool take_time(struct slice *text, int64_t *ret)
{
    uint64_t number = 0;
    bool is_forever = slice_take(text, '-');
    bool ok = is_forever || slice_take_number(text, &number);
    *ret = is_forever ? KEEP_FOREVER : (int64_t)number;
    return ok;
}

/* Take @head and the 16 hexadecimal digits behind it off the front of @text.  False, with @text
 * untouched: they are not there. */
static bool take_id(struct slice *text, const char *head, uint64_t *ret)
{
    size_t head_n = strlen(head);
    uint64_t id = 0;
    if (text->n < head_n + ID_DIGITS || memcmp(text->p, head, head_n) != 0) {
        return false;
    }
    for (size_t i = 0; i < ID_DIGITS; i++) {
        char c = text->p[head_n + i];
        bool is_digit = c >= '0' && c <= '9';
        if (!is_digit && (c < 'a' || c > 'f')) {
            return false;
        }
        id = id << 4 | (uint64_t)(is_digit ? c - '0' : c - 'a' + 10);
    }
    *text = (struct slice){text->p + head_n + ID_DIGITS, text->n - head_n - ID_DIGITS};
    *ret = id;
    return true;
}

bool settings_set(struct slice text, uint64_t *ret)
{
    size_t n = strlen(SET_HEAD) + ID_DIGITS;
    struct slice end = text.n < n ? text : (struct slice){text.p + text.n - n, n};
    return take_id(&end, SET_HEAD, ret);
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
    text = (struct slice){text.p + head_n, text.n - (size_t)head_n};
    for (int level = 0; level < LEVELS; level++) {
        if ((level > 0 && !slice_take(&text, ',')) || !take_time(&text, &r.keep_s[level])) {
            return false;
        }
    }
    (void)take_id(&text, ZONES_HEAD, &zones); /* not there if all sites are cut in UTC */
    if (!take_id(&text, SET_HEAD, &set) || text.n > 0) {
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
    for (int level = 0; level < LEVELS; level++) {
        if ((level > 0 && !slice_take(&text, ' ')) || !take_time(&text, &r.until_s[level]) ||
            !slice_take(&text, ' ') || !take_time(&text, &r.before_s[level])) {
            return false;
        }
    }
    if (text.n > 0) {
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
            continue; /* the time is not longer: readers heed the new one at once */
        }
        bool again = old->until_s[level] != 0 && old->before_s[level] < old->keep_s[level];
        r.before_s[level] = again ? old->before_s[level] : old->keep_s[level];
        r.until_s[level] = state->readers_s[parent];
    }
    return r;
}
