/* closed.h - how far a partition is rolled up: the field `st` of t:{p}:rolled.
 *
 * Layer: storage, pure.  Thread-safe.
 * A bucket of a level is closed for writers if it ends at or before writers_s[level], closed for
 * readers if it ends at or before readers_s[level].  Always, per level, readers <= writers, and the
 * writers' stamp of a level is at or before the readers' stamp of the level below.  Index
 * LEVEL_MINUTE is unused (0): minutes are never rolled up from anything.
 *
 * The sites of a partition may be cut in several zones (site_zones.h).  The stamps stop at each end
 * of a bucket in any of them, and the rules above hold for the buckets of all.
 */
#ifndef STORAGE_TIME_CLOSED_H
#define STORAGE_TIME_CLOSED_H

#include "storage/base/slice.h"
#include "storage/time/bucket.h"

struct rollup_state {
    int64_t writers_s[LEVELS];
    int64_t readers_s[LEVELS];
};

#define ROLLUP_STATE_TEXT 128 /* bytes that hold any state's text and a NUL */

/* "hc hw dc dw Mc Mw".  @text holds ROLLUP_STATE_TEXT bytes; returns the length. */
size_t rollup_state_print(const struct rollup_state *state, char *text);

/* The reverse; false (and @ret untouched) for anything that print could not have written. */
bool rollup_state_parse(struct slice text, struct rollup_state *ret);

/* The state of a partition that has no data at time @now_s: all before the current hour, day and
 * month of @zone is closed.  (That is right for buckets of every zone: there are none.) */
struct rollup_state rollup_state_initial(const struct zone *zone, int64_t now_s);

static inline bool closed_for_writers(const struct rollup_state *s, struct bucket b)
{
    return b.level != LEVEL_MINUTE && b.end_s <= s->writers_s[b.level];
}

static inline bool closed_for_readers(const struct rollup_state *s, struct bucket b)
{
    return b.level != LEVEL_MINUTE && b.end_s <= s->readers_s[b.level];
}

/* How long each level is kept after a bucket's end, in seconds; KEEP_FOREVER: always.
 * Where a keep time was made longer, buckets that had their expiry already keep it: those of the
 * level that end at or before until_s live for before_s only. */
#define KEEP_FOREVER INT64_MAX
struct retention {
    int64_t keep_s[LEVELS];
    int64_t until_s[LEVELS], before_s[LEVELS]; /* until_s 0: no such buckets */
};

/* The keep time of @bucket. */
static inline int64_t retention_keep_s(const struct retention *r, struct bucket bucket)
{
    int64_t keep_s = r->keep_s[bucket.level];
    bool before = r->until_s[bucket.level] != 0 && bucket.end_s <= r->until_s[bucket.level];
    return before && r->before_s[bucket.level] < keep_s ? r->before_s[bucket.level] : keep_s;
}

#endif
