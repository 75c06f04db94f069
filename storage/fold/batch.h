/* batch.h - entries of logs that are folded together, as events sorted by partition.
 *
 * Layer: storage.  Belongs to the fold's thread.
 *
 * A batch holds entries of one or several logs in the order of their arrival.  Their events are its
 * rows, numbered through.  So a row's number says how far a partition has come in all logs at once:
 * all rows below are counted there.  What is done with a row is its tasks (batch_tasks.h), which
 * lie in up to four partitions.
 */
#ifndef STORAGE_FOLD_BATCH_H
#define STORAGE_FOLD_BATCH_H

#include "storage/base/arena.h"
#include "storage/base/index.h"
#include "storage/core/core.h"
#include "storage/fold/batch_tasks.h"
#include "storage/schema/log_state.h"
#include "storage/log/entry.h"

/* Of one batch.  More of them wait for the next one, and what arrived in these is then counted
 * behind what arrived later in the others.  A process has one log, or on a cluster one at each
 * place that keys lead to, up to 64. */
#define BATCH_LOGS 256

struct batch_entry {
    struct log_entry *entry; /* an owned reference */
    uint32_t log;            /* number of its log in the batch */
    uint32_t first_row, n_rows;
    int64_t arrival_s;
    int64_t order_ms; /* its arrival, but not before that of an earlier entry of the log */
};

/* The batch has all entries of the log behind @from up to @to, unless the stream did not have
 * them. */
struct batch_log {
    char id[LOG_ID_TEXT + 1];
    uint64_t from, to;
    bool in_memory; /* the entries were not read from the stream */
    bool more;      /* there are more entries behind @to: what arrived after them has to wait,
                       unless the next one is broken */
    bool broken;    /* the entry behind @to cannot be read */
};

/* Zeroed it is empty. */
struct batch {
    struct batch_log logs[BATCH_LOGS];
    size_t n_logs;
    struct batch_entry *entries; /* owned */
    size_t n_entries, entries_capacity;
    struct row *rows; /* owned; row->entry is the number of its entry */
    size_t n_rows, rows_capacity;
    size_t n_requests;                        /* that the rows came in */
    struct batch_tasks tasks[PARTITIONS_MAX]; /* by partition; in it by stripe, then by row */
    struct row_site **sites;                  /* owned array of sites in the arena; each once */
    size_t n_sites, sites_capacity;
    struct index site_index;
    struct counted_value *values; /* owned; each once */
    size_t n_values, values_capacity;
    struct index value_index;
    struct arena arena; /* sites, actions, numbers of values */
};

/* Forget all, and release the references. */
void batch_clear(struct batch *batch);
void batch_release(struct batch *batch);

/* Begin a log.  NULL: the batch has BATCH_LOGS of them already. */
struct batch_log *batch_add_log(struct batch *batch, const char *id, uint64_t from);

/* Add an entry of the log that was begun last, with a number above all before.  The batch takes
 * over the caller's reference, also on failure.  False: out of memory. */
bool batch_add(struct batch *batch, struct log_entry *entry) MUST_CHECK;

/* How many entries of log @log the stream did not have. */
uint64_t batch_missing(const struct batch *batch, size_t log);

/* How many events the added entries have.  Those that were read from a stream do not say. */
size_t batch_events(const struct batch *batch);

/* All logs are in: make the rows.  False: out of memory, and the batch can only be cleared. */
bool batch_finish(struct batch *batch, const struct core *core) MUST_CHECK;

/* How much of log @log is counted in a stripe once all rows below @row are. */
struct log_position batch_position(const struct batch *batch, uint32_t log, uint32_t row);

/* Do the events come in many small requests?  Then many more come while they are counted. */
bool batch_has_many(const struct batch *batch);

/* The first row of the entry that row @row belongs to. */
static inline uint32_t batch_entry_start(const struct batch *batch, uint32_t row)
{
    return batch->entries[batch->rows[row].entry].first_row;
}

#endif
