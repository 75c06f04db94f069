/* merge_visits.h - many rows into few questions: which events may start a visit.
 *
 * Layer: storage, pure.  One owner; scratch memory is kept between uses.
 * A visit starts when a visitor had no event in the `timeout` seconds before, in the order of
 * arrival; an event older than the visitor's last one starts none.  With L the time of the last
 * event that Redis remembers, event i of those merged here starts a visit iff there is no L, or
 * t(i) > L + timeout, and t(i) > max(t(1)..t(i-1)) + timeout.  The second half is decided here:
 * only events that pass it (the candidates, most often one per visitor) are sent, with the newest
 * time.
 */
#ifndef STORAGE_WRITE_MERGE_VISITS_H
#define STORAGE_WRITE_MERGE_VISITS_H

#include "storage/base/buffer.h"
#include "storage/schema/hashed_event.h"
#include "storage/time/write_plan.h"

struct merge_visits;

struct merge_visits *merge_visits_new(void);
void merge_visits_free(struct merge_visits *merge);
void merge_visits_clear(struct merge_visits *merge);

/* Add the event of @row (it has a visitor), in order of arrival.  False: out of memory. */
bool merge_visits_add(struct merge_visits *merge, const struct row *row, int64_t timeout_s,
    const struct write_target *targets, unsigned n_targets);

/* Write the section "visits" of write.lua; see merge_counts_write. */
void merge_visits_write(struct merge_visits *merge, const char *tag, int64_t timeout_s,
    struct buffer *keys, size_t *n_keys, struct buffer *args, size_t *n_args);

/* Call @visit for each bucket that may be written to. */
void merge_visits_targets(const struct merge_visits *merge,
    void (*visit)(void *data, struct slice site, const struct write_target *target), void *data);

#endif
