/* memory.h - the page views, or the visits, of all pages in buckets that are over, remembered.
 *
 * Layer: storage, private to pages/scan.c.  Belongs to a reader thread; what is remembered is
 * shared (read/cache.h).
 *
 * The unit is a run (read/run.h) in one partition.  What is kept of a run is a table of all its
 * pages (pages/table.h), whichever of them are asked for: so a prefix, and pages by name, are
 * answered from the table too.  A table larger than a fair part of the cache is not kept: a site of
 * a million pages must not take the place of all others.  While a run is read, its pages are summed
 * up by themselves, for the table; they join the others when all of the run is there.
 */
#ifndef STORAGE_PAGES_MEMORY_H
#define STORAGE_PAGES_MEMORY_H

#include "storage/job/event.h"
#include "storage/pages/sums.h"
#include "storage/read/kept_parts.h"
#include "storage/schema/part_set.h"

/* What was read of a run so far; buckets by their place in the run. */
struct run_sums {
    struct page_sums own;
    const struct kept_run *kept; /* of a run that is recalled, what holds its table */
    size_t left;                 /* buckets that are not read through */
    bool given_up;               /* the table would be too large to keep */
};

struct pages_memory {
    struct proved_read *r;
    enum key_kind kind; /* of the buckets: KEY_PV or KEY_VV */
    struct kept_parts kept;
    struct buffer made;     /* the last table that was made */
    uint32_t turn;          /* buckets added to sums: a number of its own for each */
    struct partition_runs { /* owned, one a partition */
        struct remembered_runs runs;
        struct run_sums *sums; /* owned: of each of runs */
    } * of;
};

/* Find the runs of the covers of @parts, which are planned, and the tables of @kind that are
 * remembered of them.  False: no memory. */
bool pages_memory_begin(struct pages_memory *memory, struct proved_read *r, enum key_kind kind,
    const struct part_set *parts);
/* Remember what was read, also after an error.  Release in any case. */
void pages_memory_keep(struct pages_memory *memory);
void pages_memory_release(struct pages_memory *memory);

/* The run that bucket @i of the partition's cover is in; NULL: none. */
struct remembered_run *pages_memory_run(
    const struct pages_memory *memory, unsigned partition, size_t i);

/* What was read of it. */
struct run_sums *pages_memory_sums(
    const struct pages_memory *memory, unsigned partition, const struct remembered_run *run);

/* Under which name bucket @i's number of @page stands in a run's own sums.  What a cap put together
 * has a name for each bucket: so its entries in the table are of one bucket each, and tell how much
 * lies in which. */
#define RUN_PAGE_MAX (EVENT_PAGE_MAX + sizeof(uint32_t))
struct slice pages_memory_own_name(struct slice page, size_t i, char text[static RUN_PAGE_MAX]);

/* May more be added to @sums, of a run of @n buckets?  Else they are given up. */
bool pages_memory_has_room(const struct pages_memory *memory, struct run_sums *sums, size_t n);

/* The table of a run whose buckets are all read, or which was recalled; what was read is remembered
 * if that can be proved.  It lives until the next call.  False: no memory. */
bool pages_memory_table(struct pages_memory *memory, unsigned partition, struct remembered_run *run,
    struct slice *ret_table);

#endif
