/* merge_counts.h - many events into few commands: what is counted per bucket and page.
 *
 * Layer: storage, pure.  One owner; scratch memory is kept between uses.
 *
 * Page views are merged, for each bucket and name, into one change of a counter, one PFADD with all
 * visitors and one with all addresses.  Visits that begin are merged, too, and have no sketches.
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

/* @config has the caps of names (job/name_cap.h), and outlives the result.  NULL: out of memory. */
struct merge_counts *merge_counts_new(
    const struct storage_config *config, unsigned n_partitions) MUST_CHECK;
void merge_counts_free(struct merge_counts *merge); /* NULL is harmless */

/* Forget what was merged.  All rows that are added from now on are among @rows. */
void merge_counts_begin(struct merge_counts *merge, const struct row *rows);

/* What a row adds to a sum of its site's visits. */
struct merge_sum {
    struct slice name; /* the sum's name, see job/counted_name.h */
    uint32_t amount;   /* visits, or seconds */
};

/* Count @row in each target for each of @n names: as a view (@kind: KEY_PV), or as a visit that
 * begins (KEY_VV).  @row and the names stay as they are until the commands are written.  False: out
 * of memory. */
bool merge_counts_add(struct merge_counts *merge, enum key_kind kind, const struct row *row,
    const struct counted_for *names, size_t n, const struct write_target *targets,
    unsigned n_targets) MUST_CHECK;

/* Add @sum to that of the visits of the row's site in each target.  @row and the name stay as they
 * are until the commands are written.  False: out of memory. */
bool merge_counts_add_sum(struct merge_counts *merge, const struct row *row,
    const struct merge_sum *sum, const struct write_target *targets, unsigned n_targets) MUST_CHECK;

/* Ask what the counters of old buckets have: append the questions to @out, and return how many they
 * are.  @state is the rollup's, read behind the WATCH; @now_ms is Redis's clock, UTC.  The
 * questions are about minutes that are not recent, and about coarser buckets that are closed for
 * readers.  No pass of the rollup writes to these any more, so the answers hold until the
 * transaction, or the transaction is void.  Without them an import would send an increment for each
 * name, two PFADD for each page, and the expiries of both; most of these keys are new.
 *
 * What a closed day does not have, its hours do not have, and so with an hour and its minutes.  So
 * days are asked first.  Behind the answers merge_counts_write_rest() asks for what is left, first
 * of hours, then of minutes (@level).  Most of these need no question in an import. */
size_t merge_counts_write_questions(struct merge_counts *merge, const char *tag, int64_t now_ms,
    const struct rollup_state *state, struct buffer *out);
size_t merge_counts_write_rest(
    struct merge_counts *merge, enum level level, const char *tag, struct buffer *out);

/* Take the answer to the next question.  False: @reply is none. */
bool merge_counts_take(struct merge_counts *merge, const struct reply *reply) MUST_CHECK;

/* May an old hour have too many names with those that are merged here, or were names put together
 * in it before?  Then places must decide (places/places.h). */
bool merge_counts_exceeds(const struct merge_counts *merge);

/* What is known of keys in Redis, and learnt about them. */
struct known_keys {
    struct known_hashes *expiries;
    struct known_sketches *sketches;
    struct known_counts *counts; /* taken for `partition`; NULL: nothing is known, nor learnt */
    unsigned partition;
};

/* Append the commands to @out, and return how many they are: HINCRBY (minutes) or ZINCRBY (coarser
 * buckets), PFADD, and PEXPIREAT NX where a target has an expiry.  A bucket that expires by @now_ms
 * (Redis's clock, UTC) is left out.  If memory is out, out->failed is set.
 *
 * Counters whose values are known get their new values by one HSET or ZADD for the bucket: those of
 * recent minutes that are remembered, and those of old buckets that were asked for.  Redis would
 * spend more on the HINCRBY around a counter than on the counter.
 *
 * A name that an old bucket did not have has no sketches there either.  They are made here, and set
 * by an MSET of many, or by a SET with the expiry.
 *
 * A key that is written late gets an expiry at once, and keeps its first one.  An import writes to
 * the keys of an hour or a day again and again, so an expiry that is @known is not set again.  It
 * is known by a hash of the key's name and of @state, the text of the rollup's state: only a rollup
 * makes a key anew, and that changes the state.
 *
 * An element that would not raise a register that is @known is left out.  That goes for recent
 * minutes, whose keys cannot have expired. */
size_t merge_counts_write(struct merge_counts *merge, const char *tag, int64_t now_ms,
    const struct known_keys *known, struct slice state, struct buffer *out);

/* The commands were carried out, with the answers @replies: remember what the counters have. */
void merge_counts_learn_values(const struct merge_counts *merge, const char *tag,
    const struct known_keys *known, const struct reply *replies);

/* The commands were carried out: remember the expiries that they have set. */
void merge_counts_learn(const struct merge_counts *merge, struct known_hashes *known);

/* The commands were carried out: remember the elements that they have added to sketches. */
void merge_counts_learn_elements(const struct merge_counts *merge, struct known_sketches *known);

/* Call @visit for each bucket in which something is counted. */
void merge_counts_targets(const struct merge_counts *merge,
    void (*visit)(void *data, struct slice site, const struct write_target *target), void *data);

#endif
