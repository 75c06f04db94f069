/* merge_counts.h - many events into few commands: what is counted per bucket and page.
 *
 * Layer: storage, pure.  One owner; scratch memory is kept between uses.
 *
 * Page views are merged, per bucket and name into one change of a counter, one PFADD with all
 * visitors and one with all addresses; and visits that began, which have no sketches.
 */
#ifndef STORAGE_MERGE_MERGE_COUNTS_H
#define STORAGE_MERGE_MERGE_COUNTS_H

#include "storage/base/buffer.h"
#include "storage/base/known_hashes.h"
#include "storage/known/known_counts.h"
#include "storage/job/config.h"
#include "storage/known/known_sketches.h"
#include "storage/places/counted_for.h"
#include "storage/redis/reply.h"
#include "storage/schema/hashed_event.h"
#include "storage/schema/key.h"
#include "storage/time/closed.h"
#include "storage/time/write_plan.h"

struct merge_counts;

/* @config has the caps of names (job/name_cap.h); it must stay.  NULL: out of memory. */
struct merge_counts *merge_counts_new(
    const struct storage_config *config, unsigned n_partitions) MUST_CHECK;
void merge_counts_free(struct merge_counts *merge);

/* Forget what was merged.  All rows that are added from now on are among @rows. */
void merge_counts_begin(struct merge_counts *merge, const struct row *rows);

/* A sum that a row adds to. */
struct merge_sum {
    struct slice name; /* see job/counted_name.h */
    uint32_t amount;
};

/* Count @row (which must stay as it is until the commands are written, and so must the names) in
 * each target for each of @n names: as a view (@kind: KEY_PV), or as a visit that begins (KEY_VV).
 * False: out of memory. */
bool merge_counts_add(struct merge_counts *merge, enum key_kind kind, const struct row *row,
    const struct counted_for *names, size_t n, const struct write_target *targets,
    unsigned n_targets) MUST_CHECK;

/* Add to a sum of the visits of the row's site in each target.  @row and the name must stay as
 * above.  False: out of memory. */
bool merge_counts_add_sum(struct merge_counts *merge, const struct row *row,
    const struct merge_sum *sum, const struct write_target *targets, unsigned n_targets) MUST_CHECK;

/* Ask what the counters of old buckets have: append the questions to @out, and return how many they
 * are.  @state is the rollup's, read behind the WATCH.  Asked are minutes that are not recent, and
 * coarser buckets that are closed for readers: no pass writes to these any more, so what they have
 * holds until the transaction, or the transaction is void.  An import would else send an increment
 * a name, two PFADD a page, and the expiries of both; most of these keys are new.
 *
 * What a closed day does not have, its hours do not have, and so with an hour and its minutes.  So
 * days are asked first, and merge_counts_write_rest() asks, behind the answers, for what is left:
 * of hours, then of minutes.  Most of these need no question in an import. */
size_t merge_counts_write_questions(struct merge_counts *merge, const char *tag, int64_t now_ms,
    const struct rollup_state *state, struct buffer *out);
size_t merge_counts_write_rest(
    struct merge_counts *merge, enum level level, const char *tag, struct buffer *out);

/* The answer to the next question.  False: it is none. */
bool merge_counts_take(struct merge_counts *merge, const struct reply *reply) MUST_CHECK;

/* May an old hour have too many names with those that are merged, or was one put together there
 * before?  Then places must decide (places/places.h). */
bool merge_counts_exceeds(const struct merge_counts *merge);

/* Append the commands to @out, and return how many they are: HINCRBY (minutes) or ZINCRBY (coarser
 * buckets), PFADD, and PEXPIREAT NX where a target has an expiry.  A bucket whose time is over at
 * @now_ms (Redis's clock) is passed over.
 *
 * Counters whose values are known get their new ones by one HSET or ZADD a bucket: those of recent
 * minutes that are remembered, and those of old buckets that were asked for.  Redis would spend
 * more on the HINCRBY around a counter than on the counter.
 *
 * A name that an old bucket did not have has no sketches there either.  They are made here, and set
 * by an MSET of many, or by a SET with the expiry.
 *
 * What is written late gets an expiry at once, and a key keeps its first one.  An import writes to
 * the keys of an hour or a day again and again, so the expiries that are @known are not set again:
 * by a hash of the key's name and of @state, the text of the rollup's state.  Only a rollup makes a
 * key anew, and that changes the state.
 *
 * An element that would not raise a register that is @known is left out.  That goes for minutes
 * that ended lately: their keys cannot have expired. */
struct known_keys {
    struct known_hashes *expiries;
    struct known_sketches *sketches;
    struct known_counts *counts; /* taken for @partition; NULL: nothing is known, nor learnt */
    unsigned partition;
};
size_t merge_counts_write(struct merge_counts *merge, const char *tag, int64_t now_ms,
    const struct known_keys *known, struct slice state, struct buffer *out);

/* The commands were carried out, with these answers: remember what the counters have.. */
void merge_counts_learn_values(const struct merge_counts *merge, const char *tag,
    const struct known_keys *known, const struct reply *replies);

/* ..the expiries that were set.. */
void merge_counts_learn(const struct merge_counts *merge, struct known_hashes *known);

/* ..and the elements that they added. */
void merge_counts_learn_elements(const struct merge_counts *merge, struct known_sketches *known);

/* Call @visit for each bucket that something was counted in. */
void merge_counts_targets(const struct merge_counts *merge,
    void (*visit)(void *data, struct slice site, const struct write_target *target), void *data);

#endif
