/* batch.h - entries of logs that are folded together, as events sorted by partition.
 *
 * Layer: storage.  Belongs to the fold's thread; the threads of lanes (lanes.h) read it meanwhile.
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

/* A batch has at most so many logs.  Further ones wait for the next batch: their events are counted
 * behind later events of the others.  A process has one log, or in a cluster one at each place that
 * keys lead to, up to 64. */
#define BATCH_LOGS 256

struct batch_entry {
    struct log_entry *entry; /* an owned reference */
    uint32_t log;            /* number of the entry's log in the batch */
    uint32_t first_row, n_rows;
    int64_t arrival_s; /* Redis's clock, UTC */
    int64_t order_ms;  /* the arrival, or that of an earlier entry of the log if it is later */
};

/* The batch has all entries of the log with numbers above @from and up to @to, except those that
 * the stream did not have. */
struct batch_log {
    char id[LOG_ID_TEXT + 1];
    uint64_t from, to;
    bool more;   /* the log has entries behind @to: what arrived in other logs after @to waits for
                    the next batch, unless the log is broken */
    bool broken; /* the entry behind @to cannot be read */
};

/* Zeroed it is empty.  Its rows point into its entries, and into its arena. */
struct batch {
    struct batch_log logs[BATCH_LOGS];
    size_t n_logs;
    struct batch_entry *entries; /* owned */
    size_t n_entries, entries_capacity;
    struct row *rows; /* owned; row->entry is the number of its entry */
    size_t n_rows, rows_capacity;
    size_t n_requests;                        /* the rows came in so many requests */
    struct batch_tasks tasks[PARTITIONS_MAX]; /* by partition; of each by stripe, then by row */
    struct row_site **sites;                  /* owned array of sites in the arena; each once */
    size_t n_sites, sites_capacity;
    struct index site_index;
    struct counted_value *values; /* owned; each once */
    size_t n_values, values_capacity;
    struct index value_index;
    struct arena arena; /* sites, actions, numbers of values */
};

/* Empty the batch, and release the references to entries.  Memory is kept, unless that is much. */
void batch_clear(struct batch *batch);
void batch_release(struct batch *batch);

/* Begin log @id behind entry @from.  NULL: the batch has BATCH_LOGS of them already.  The log stays
 * where it is until the batch is cleared. */
struct batch_log *batch_add_log(struct batch *batch, const char *id, uint64_t from);

/* Add an entry of the log that was begun last, with a number above those of its earlier entries.
 * The batch takes over the caller's reference, also on failure.  False: out of memory. */
bool batch_add(struct batch *batch, struct log_entry *entry) MUST_CHECK;

/* How many entries of log number @log the stream did not have. */
uint64_t batch_missing(const struct batch *batch, size_t log);

/* How many events the added entries have.  Those that were read from a stream count as 0. */
size_t batch_events(const struct batch *batch);

/* All entries are added: sort them by arrival, and make rows and tasks.  False: out of memory, and
 * the batch can only be cleared. */
bool batch_finish(struct batch *batch, const struct core *core) MUST_CHECK;

/* How far a stripe has counted log number @log once it has counted all rows below @row. */
struct log_position batch_position(const struct batch *batch, uint32_t log, uint32_t row);

/* Did the events come in small requests?  Then many more requests come while these are counted. */
bool batch_has_many(const struct batch *batch);

/* The first row of the entry that row @row belongs to. */
static inline uint32_t batch_entry_start(const struct batch *batch, uint32_t row)
{
    return batch->entries[batch->rows[row].entry].first_row;
}

#endif
