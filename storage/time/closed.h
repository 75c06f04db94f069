/* closed.h - how far the minutes of a partition are summed up into hours, days and months.
 *
 * Layer: storage, pure.  Thread-safe.
 *
 * Data is cut into partitions.  In each of them a rollup fills the bucket of an hour from the
 * minutes in it, a day from its hours, a month from its days.  Two instants for each level say how
 * far the rollup has come; all instants together are the state of a partition.  Redis keeps the
 * state as text, in field `st` of the partition's hash `state`.
 *
 *     closed for writers   the bucket ends at or before writers_s[level]: a late event is added to
 *                          this bucket too
 *     closed for readers   the bucket ends at or before readers_s[level]: it holds everything, and
 *                          a question may be answered from it
 *
 * In each level the readers' instant is at or before the writers'.  The writers' instant of a level
 * is at or before the readers' instant of the next finer level.  LEVEL_MINUTE is unused (0):
 * minutes are never made from anything.
 *
 * The sites of a partition may be cut in several zones (site_zones.h).  The instants stop at each
 * end of a bucket in any of these zones, and the rules above hold for the buckets of all.
 */
#ifndef STORAGE_TIME_CLOSED_H
#define STORAGE_TIME_CLOSED_H

#include "storage/base/compiler.h"
#include "storage/base/slice.h"
#include "storage/time/bucket.h"

struct rollup_state {
    int64_t writers_s[LEVELS];
    int64_t readers_s[LEVELS];
};

#define ROLLUP_STATE_TEXT 128 /* bytes that hold any state's text and a NUL */

/* Write the state as six numbers with blanks between them: the writers' and the readers' instant of
 * hours, then of days, then of months.  @text holds ROLLUP_STATE_TEXT bytes.  Returns the length
 * without the NUL. */
size_t rollup_state_print(const struct rollup_state *state, char *text);

/* Read a state from its text.  False, with @ret untouched: rollup_state_print() cannot have written
 * @text. */
bool rollup_state_parse(struct slice text, struct rollup_state *ret) MUST_CHECK;

/* The state of a partition that has no data at @now_s: everything before the current hour, day and
 * month of UTC is closed.  No bucket holds data, so this is right for every zone. */
struct rollup_state rollup_state_initial(int64_t now_s);

static inline bool closed_for_writers(const struct rollup_state *s, struct bucket b)
{
    return b.level != LEVEL_MINUTE && b.end_s <= s->writers_s[b.level];
}

static inline bool closed_for_readers(const struct rollup_state *s, struct bucket b)
{
    return b.level != LEVEL_MINUTE && b.end_s <= s->readers_s[b.level];
}

/* How long the buckets of each level are kept after their end.  A keep time may be made longer
 * later.  Buckets that had their expiry by then still expire by the old time: those that end at or
 * before until_s live for before_s. */
#define KEEP_FOREVER INT64_MAX
struct retention {
    int64_t keep_s[LEVELS];   /* seconds, or KEEP_FOREVER */
    int64_t until_s[LEVELS];  /* 0: no bucket has an older, shorter keep time */
    int64_t before_s[LEVELS]; /* seconds, or KEEP_FOREVER */
};

/* The keep time of @bucket in seconds, or KEEP_FOREVER. */
static inline int64_t retention_keep_s(const struct retention *r, struct bucket bucket)
{
    int64_t keep_s = r->keep_s[bucket.level];
    bool before = r->until_s[bucket.level] != 0 && bucket.end_s <= r->until_s[bucket.level];
    return before && r->before_s[bucket.level] < keep_s ? r->before_s[bucket.level] : keep_s;
}

#endif
