#include "storage/schema/settings.h"

#include <inttypes.h>
#include <stdio.h>

#include "storage/schema/key.h"

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
        (void)snprintf(text + n, SETTINGS_TEXT - (size_t)n, " zones=%016" PRIx64, zones_digest);
    }
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

/* Read " zones=0123456789abcdef", or nothing, up to the end of @text. */
static bool scan_zones(struct slice text, size_t *at)
{
    static const char head[] = " zones=";
    size_t head_n = sizeof(head) - 1;
    if (*at == text.n) {
        return true;
    }
    if (text.n - *at != head_n + 16 || memcmp(text.p + *at, head, head_n) != 0) {
        return false;
    }
    for (*at += head_n; *at < text.n; (*at)++) {
        char c = text.p[*at];
        if ((c < '0' || c > '9') && (c < 'a' || c > 'f')) {
            return false;
        }
    }
    return true;
}

bool settings_parse(struct slice text, unsigned partitions, struct retention *ret)
{
    char head[64];
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
    if (!scan_zones(text, &at) || at != text.n) {
        return false;
    }
    *ret = r;
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
