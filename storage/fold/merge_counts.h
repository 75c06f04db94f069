/* merge_counts.h - many events into few commands: what is counted per bucket and page.
 *
 * Layer: storage, pure.  One owner; scratch memory is kept between uses.
 *
 * One object merges page views: per bucket and name one increment, one PFADD with all visitors and
 * one with all addresses.  Another one merges visits that began, which have no sketches.
 */
#ifndef STORAGE_FOLD_MERGE_COUNTS_H
#define STORAGE_FOLD_MERGE_COUNTS_H

#include "storage/base/buffer.h"
#include "storage/fold/known_expiries.h"
#include "storage/schema/hashed_event.h"
#include "storage/schema/key.h"
#include "storage/time/write_plan.h"

struct merge_counts;

/* @kind: KEY_PV for views with their sketches, KEY_VV for visits.  NULL: out of memory. */
struct merge_counts *merge_counts_new(enum key_kind kind) MUST_CHECK;
void merge_counts_free(struct merge_counts *merge);

/* Forget what was merged. */
void merge_counts_clear(struct merge_counts *merge);

/* What a row is counted for. */
struct merge_name {
    struct slice name; /* see job/counted_name.h; empty: the whole site */
    uint64_t hash;     /* of it; any */
    bool visitors;     /* with its visitors.. */
    bool addresses;    /* ..and addresses: with KEY_PV */
};

/* The page, or the named event, of @row; and the whole site. */
static inline struct merge_name merge_name_page(const struct row *row)
{
    return (struct merge_name){row->page, row->page_hash, true, true};
}

static inline struct merge_name merge_name_site(const struct row *row)
{
    return (struct merge_name){{NULL, 0}, row->site_hash, true, true};
}

/* Count @row (which must stay where it is until the commands are written, and so must the names) in
 * each target for each of @n names.  False: out of memory. */
bool merge_counts_add(struct merge_counts *merge, const struct row *row,
    const struct merge_name *names, size_t n, const struct write_target *targets,
    unsigned n_targets) MUST_CHECK;

/* Append the commands to @out, and return how many they are: HINCRBY (minutes) or ZINCRBY (coarser
 * buckets), PFADD, and PEXPIREAT NX where a target has an expiry that is not @known under @state,
 * the text of the rollup's state.  A bucket whose time is over at @now_ms (Redis's clock) is passed
 * over. */
size_t merge_counts_write(struct merge_counts *merge, const char *tag, int64_t now_ms,
    const struct known_expiries *known, struct slice state, struct buffer *out);

/* The commands were carried out: remember the expiries that they set. */
void merge_counts_learn(const struct merge_counts *merge, struct known_expiries *known);

/* Call @visit for each bucket that something was counted in. */
void merge_counts_targets(const struct merge_counts *merge,
    void (*visit)(void *data, struct slice site, const struct write_target *target), void *data);

#endif
