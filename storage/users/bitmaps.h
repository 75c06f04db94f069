/* bitmaps.h - what the questions about activity have in common: talking to Redis in bounded
 * pieces, and which days are kept.
 *
 * Layer: storage, private to the operations of readers.c.
 */
#ifndef STORAGE_USERS_BITMAPS_H
#define STORAGE_USERS_BITMAPS_H

#include "storage/read/operation.h"
#include "storage/schema/hashed_event.h"
#include "storage/schema/key.h"

/* One job's talk.  Commands are appended to out; talk_send sends them; talk_next takes one reply a
 * command, in order. */
struct talk {
    struct reader *reader;
    struct storage_job *job;
    bool *ret_lost;
    struct buffer out;
};

void talk_begin(struct talk *talk, struct reader *reader, struct storage_job *job, bool *ret_lost);
void talk_end(struct talk *talk);
/* False: out of memory, the connection is given up. */
bool talk_send(struct talk *talk);
/* STORAGE_OK and *ret, which lives until the next call; else the connection is given up, as replies
 * may be left on it. */
enum storage_err talk_next(struct talk *talk, const struct reply **ret);
/* A reply that must be a number, at least 0. */
enum storage_err talk_number(struct talk *talk, uint64_t *ret);
/* Something came that tallyd did not put there. */
enum storage_err talk_foreign(struct talk *talk);

/* The partition of a site's user, and its tag. */
enum storage_err activity_partition(
    struct core *core, struct slice site, struct slice user, unsigned *ret);

/* How many indices each partition has given for @site. */
enum storage_err activity_sizes(
    struct talk *talk, struct slice site, uint64_t ret[static PARTITIONS_MAX]);

/* The first day, of @zone, that is kept, as far as is known without asking. */
int64_t activity_oldest_day(const struct core *core, const struct zone *zone, int64_t now_s);

/* To be called after bitmaps of @site's days from @first_day on were read in partitions [low,
 * high): were they kept all the while?  STORAGE_NOT_KEPT: no.  *ret_oldest is set in either case.
 */
enum storage_err activity_were_kept(struct talk *talk, struct slice site, unsigned low,
    unsigned high, int64_t first_day, int64_t *ret_oldest);

#endif
