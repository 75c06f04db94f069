/* day_sets.h - sets of users who did something on some days, read from Redis piece by piece.
 *
 * Layer: storage.  Not thread-safe: one owner, the thread of the session.
 *
 * Each user lies in one partition, so the counts of the partitions add up.  In a partition, bitmaps
 * come piece by piece (GETRANGE), in the order of their days, and each of them once however many
 * sets it belongs to.  This process puts them together.  BITOP into temporary keys would take
 * Redis's only thread three times as long, in pieces that grow with the users, and would write.  No
 * command takes Redis more than a quarter of a millisecond, and no more than a few MB are asked for
 * ahead.
 *
 *     a set with        is kept as
 *     ----------        ----------
 *     no min_days       a bitmap, into which each bitmap that comes is united or intersected
 *     min_days          how many days so far, for each user (sketch/sliced.h)
 *     only_new          a bitmap, and for each user on how many days to come the user is not new
 *
 * So memory and work do not depend on how far back `new` looks.
 */
#ifndef STORAGE_USERS_DAY_SETS_H
#define STORAGE_USERS_DAY_SETS_H

#include "storage/sketch/sliced.h"
#include "storage/users/bitmaps.h"

#define DAY_SETS_PIECE 131072 /* bytes of a bitmap at once: a million users */

/* The sets of a question, at one piece of one partition at a time. */
struct day_sets {
    struct activity *activity;
    const struct activity_question *asked;
    struct day_use *uses; /* owned, by day and action */
    size_t n_uses;
    size_t piece;    /* bytes of each bitmap at once: whole blocks of SLICED_WORDS */
    uint64_t *words; /* owned: the sets, and what is below */
    uint64_t *row;   /* a day's bitmap */
    uint64_t *known; /* the users who are not new, on the first day of the set at hand */
    struct sliced days, recent;
    uint64_t *counts; /* owned: of sets that Redis counts, how many users each has; else NULL */
};

/* Make the sets of @asked, which outlives them, for pieces of at most @piece bytes.  False: out of
 * memory, and the operation has failed.  day_sets_release() must follow in either case. */
bool day_sets_make(struct day_sets *s, struct activity *a, const struct activity_question *asked,
    size_t piece) MUST_CHECK;
void day_sets_release(struct day_sets *s);

/* The same for sets of one bitmap each, which Redis counts: day_sets_read_all() adds to `counts`,
 * and no piece is handed out. */
bool day_sets_make_counted(
    struct day_sets *s, struct activity *a, const struct activity_question *asked) MUST_CHECK;

/* The users of set @i in the piece that was read, as day_sets_words(n) words. */
static inline uint64_t *day_sets_users(const struct day_sets *s, size_t i)
{
    return s->words + i * (s->piece / sizeof(*s->words));
}
static inline size_t day_sets_words(size_t n)
{
    size_t block = SLICED_WORDS * sizeof(uint64_t);
    return (n + block - 1) / block * SLICED_WORDS;
}

/* Where a piece begins: at byte `at` of each bitmap in `partition`. */
struct day_place {
    unsigned partition;
    uint64_t at;
};

/* Takes a piece that was read, of @n words. */
typedef void day_sets_take(
    const struct day_sets *s, const struct day_place *place, size_t n, void *data);

/* Read @most pieces, or as many as there are, from @place on, which is moved behind them.  @users
 * are the activity_sizes().  After a fault, which is in pipe.err, @take is not called any more. */
bool day_sets_read(struct day_sets *s, const uint64_t users[static PARTITIONS_MAX],
    struct day_place *place, size_t most, day_sets_take *take, void *data) MUST_CHECK;

/* Read all pieces of all partitions; @take may be NULL.  day_sets_answer() must follow. */
void day_sets_read_all(struct day_sets *s, day_sets_take *take, void *data);

/* Are all days of @asked kept, as far as is known without asking Redis?  *ret_oldest is the first
 * day that is kept. */
bool day_sets_are_kept(
    struct core *core, const struct activity_question *asked, int64_t *ret_oldest) MUST_CHECK;

/* Answer @job, which asked for @asked, after all was read.  STORAGE_NOT_KEPT: some days were taken
 * away meanwhile, and *ret_oldest is the first day that is kept. */
enum storage_err day_sets_answer(struct activity *a, struct storage_job *job,
    const struct activity_question *asked, int64_t *ret_oldest, bool *ret_lost) MUST_CHECK;

#endif
