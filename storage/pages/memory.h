/* memory.h - the page views of all pages in buckets that are over, remembered.
 *
 * Layer: storage, private to pages/scan.c.  Belongs to a reader thread; what is remembered is
 * shared (cache.h).
 *
 * The unit is a run (read/run.h) in one partition; what is kept of it is a table of all its pages
 * (pages/table.h), whichever of them are asked for: so a prefix, and pages by name, are answered
 * from it too.  A table larger than a fair part of the cache is not kept: a site of a million pages
 * must not take the place of all others.  While a run is read its pages are summed up by
 * themselves, for the table; they join the others when all of it is there.
 *
 * Whether a table holds is window_read's to say, by the proofs in the replies.
 */
#ifndef STORAGE_PAGES_MEMORY_H
#define STORAGE_PAGES_MEMORY_H

#include "storage/pages/sums.h"
#include "storage/read/cache.h"
#include "storage/read/proved_read.h"

/* Buckets [first, first + n) of a partition's cover. */
struct pages_run {
    size_t first, n;
    struct cache_id id;
    bool recalled;         /* its table is there: it need not be read */
    size_t table, n_table; /* where, in memory->tables */
    struct page_sums own;  /* else: what was read of it so far; buckets by their place in the run */
    size_t left;           /* of its buckets, that are not read through */
    bool given_up;         /* it would be too large to keep */
    enum proof proof;      /* by the plan */
    bool seen, mixed;      /* replies about it came; of several proofs */
    struct ver ver;        /* theirs */
};

struct pages_memory {
    struct window_read *w;
    struct buffer tables; /* those that were recalled, and behind them the last one that was made */
    size_t n_recalled;
    struct partition_runs {
        struct pages_run *runs; /* owned; in time order */
        size_t n, capacity;
    } of[PARTITIONS_MAX];
};

/* Find the runs of all planned covers, and the tables that are remembered of them.  False: no
 * memory.  Release in either case. */
bool pages_memory_begin(struct pages_memory *memory, struct window_read *w);
void pages_memory_release(struct pages_memory *memory);

/* The run that bucket @i of the partition's cover is in; NULL: none. */
struct pages_run *pages_memory_run(struct pages_memory *memory, unsigned partition, size_t i);

/* A reply about buckets of @run has come, and w->known has it. */
void pages_memory_seen(struct pages_memory *memory, unsigned partition, struct pages_run *run);

/* May what is read of it from now on be added to run->own?  Else it is given up. */
bool pages_memory_has_room(const struct pages_memory *memory, struct pages_run *run);

/* The table of a run whose buckets are all read, or which was recalled; what was read is remembered
 * if that can be proved.  It lives until the next call.  False: no memory. */
bool pages_memory_table(struct pages_memory *memory, unsigned partition, struct pages_run *run,
    struct slice *ret_table);

#endif
