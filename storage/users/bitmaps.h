/* bitmaps.h - the parts that questions about users' days share: sizes, and which days are kept.
 *
 * Layer: storage.  One owner: the thread whose session it is.
 *
 * Every user of a site has an index, a number, in one partition.  Each day and action has a bitmap
 * there, in which the user's bit is set if the user was active.  (schema/key.h has the keys.)
 * A question reads bitmaps in bounded pieces, and asks at its end whether they were all kept while
 * it read: bitmaps of days that are too old are swept away.
 */
#ifndef STORAGE_USERS_BITMAPS_H
#define STORAGE_USERS_BITMAPS_H

#include "storage/base/compiler.h"
#include "storage/read/operation.h"
#include "storage/read/pipeline.h"
#include "storage/schema/hashed_event.h"
#include "storage/schema/key.h"

/* An operation about activity that is under way.  Functions that return a bool return false after a
 * fault: see pipe.err. */
struct activity {
    struct core *core;
    struct pipeline pipe;
    bool kept_is_asked; /* the replies that activity_were_kept() takes come next */
};

/* Begin an operation on @session, which is connected, until @deadline_ms (CLOCK_MONOTONIC).
 * pipeline_end() or pipeline_answer() must follow. */
void activity_begin(
    struct activity *a, struct core *core, struct session *session, int64_t deadline_ms);

/* The partition of a site's user.  STORAGE_DOWN: no Redis has told the secret yet. */
enum storage_err activity_partition(
    struct core *core, struct slice site, struct slice user, unsigned *ret) MUST_CHECK;

/* Questions bound what they ask for ahead in bytes of bitmaps; each command counts for so many
 * bytes besides. */
#define ACTIVITY_COMMAND 2048

#define ACTIVITY_GENERATION 33 /* bytes of field `users` of a state, a random id, with a NUL */

/* How many indices each partition has given to users of @site; 0 where there can be none. */
bool activity_sizes(
    struct activity *a, struct slice site, uint64_t ret[static PARTITIONS_MAX]) MUST_CHECK;

/* The first day (a number of time/day.h, of @zone) that is kept, as far as is known without asking
 * Redis. */
int64_t activity_oldest_day(const struct core *core, const struct zone *zone, int64_t now_s);

/* Ask now what activity_were_kept() needs to know, which saves a round trip.  All commands that
 * read in partitions [@low, @high) were begun, and no others will follow.  One Redis carries
 * commands out in their order.  Several servers do not: there this does nothing, and
 * activity_were_kept() asks when all is read. */
void activity_ask_kept(struct activity *a, unsigned low, unsigned high);

/* After bitmaps of @site's days from @first_day on were read in partitions [@low, @high): were they
 * kept all the while?  If not, pipe.err is STORAGE_NOT_KEPT; *ret_oldest, the first day that is
 * kept, is set in that case too. */
bool activity_were_kept(struct activity *a, struct slice site, unsigned low, unsigned high,
    int64_t first_day, int64_t *ret_oldest);

#endif
