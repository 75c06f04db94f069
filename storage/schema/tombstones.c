#include "storage/schema/tombstones.h"

#include <string.h>

/* The next line: its site and its instant.  False: there is no more. */
static bool tombstones_next(struct slice *rest, struct slice *ret_site, int64_t *ret_before_ms)
{
    const char *end = rest->n == 0 ? NULL : memchr(rest->p, '\n', rest->n);
    const char *blank = end == NULL ? NULL : memchr(rest->p, ' ', (size_t)(end - rest->p));
    if (blank == NULL) {
        return false;
    }
    int64_t before_ms = 0;
    for (const char *c = blank + 1; c < end && *c >= '0' && *c <= '9'; c++) {
        before_ms = before_ms > INT64_MAX / 10 - 1 ? INT64_MAX / 10 - 1 : before_ms;
        before_ms = before_ms * 10 + (*c - '0');
    }
    *ret_site = (struct slice){rest->p, (size_t)(blank - rest->p)};
    *ret_before_ms = before_ms == 0 ? INT64_MAX : before_ms;
    rest->n -= (size_t)(end + 1 - rest->p);
    rest->p = end + 1;
    return true;
}

struct tombstones tombstones_of(struct slice text)
{
    struct tombstones all = {text, INT64_MIN};
    struct slice site;
    int64_t before_ms;
    while (tombstones_next(&text, &site, &before_ms)) {
        all.last_ms = before_ms > all.last_ms ? before_ms : all.last_ms;
    }
    return all;
}

int64_t tombstones_before(const struct tombstones *tombstones, struct slice site)
{
    struct slice rest = tombstones->text;
    struct slice is;
    int64_t before_ms;
    while (tombstones_next(&rest, &is, &before_ms)) {
        if (slice_equal(is, site)) {
            return before_ms;
        }
    }
    return INT64_MIN;
}

struct slice tombstones_going_on(const struct tombstones *tombstones)
{
    struct slice rest = tombstones->text;
    struct slice site;
    int64_t before_ms;
    while (tombstones_next(&rest, &site, &before_ms)) {
        if (before_ms == INT64_MAX) {
            return site;
        }
    }
    return SLICE("");
}

bool tombstones_cover(const struct tombstones *tombstones, struct slice site, int64_t arrival_ms)
{
    return arrival_ms < tombstones->last_ms && arrival_ms < tombstones_before(tombstones, site);
}
