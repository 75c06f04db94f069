/* merge_counts.h - many rows into few commands: what is counted per bucket and page.
 *
 * Layer: storage, pure.  One owner; scratch memory is kept between uses.
 * One PFADD with all visitors of a page and bucket, one increment of its views.
 */
#ifndef STORAGE_WRITE_MERGE_COUNTS_H
#define STORAGE_WRITE_MERGE_COUNTS_H

#include "storage/base/buffer.h"
#include "storage/schema/hashed_event.h"
#include "storage/time/write_plan.h"

struct merge_counts;

struct merge_counts *merge_counts_new(void);
void merge_counts_free(struct merge_counts *merge);

/* Forget what was merged. */
void merge_counts_clear(struct merge_counts *merge);

/* Count @row (which must stay where it is until the section is written) in each target: for its
 * page, or for the whole site if @whole_site.  False: out of memory. */
bool merge_counts_add(struct merge_counts *merge, const struct row *row, bool whole_site,
    const struct write_target *targets, unsigned n_targets);

/* Write the section "counts" of write.lua: keys into @keys, arguments into @args, as RESP words;
 * the numbers of words are added to *n_keys and *n_args. */
void merge_counts_write(const struct merge_counts *merge, const char *tag, struct buffer *keys,
    size_t *n_keys, struct buffer *args, size_t *n_args);

/* Call @visit for each bucket that was written to. */
void merge_counts_targets(const struct merge_counts *merge,
    void (*visit)(void *data, struct slice site, const struct write_target *target), void *data);

#endif
