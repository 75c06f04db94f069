/* memory.h - the page views, or the visits, of all pages in buckets that are over, remembered.
 *
 * Layer: storage, private to pages/scan.c.  Belongs to a reader thread; all threads share the cache
 * (read/cache.h).
 *
 * The unit is a run (read/run.h) in one partition.  What is kept of a run is a table of all its
 * pages (pages/table.h), whichever pages are asked for.  So the table also answers questions with a
 * prefix, or with pages by name.  A table larger than a fair part of the cache is not kept: a site
 * of a million pages must not take the place of all other sites.  While a run is read, its pages
 * are summed up by themselves, for the table.  They join the question's sums when all of the run is
 * read.
 */
#ifndef STORAGE_PAGES_MEMORY_H
#define STORAGE_PAGES_MEMORY_H

#include "storage/job/event.h"
#include "storage/pages/sums.h"
#include "storage/read/kept_parts.h"
#include "storage/schema/part_set.h"

/* What was read of a run so far. */
struct run_sums {
    struct page_sums own;        /* `present` numbers the buckets from the run's first one on */
    const struct kept_run *kept; /* if the run is recalled: the value that has its table */
    size_t left;                 /* how many of its buckets are not read through */
    bool given_up;               /* the table would be too large to keep */
};

struct pages_memory {
    struct proved_read *r;
    enum key_kind kind; /* KEY_PV: page views; KEY_VV: visits */
    struct kept_parts kept;
    struct buffer made;     /* the table that was made last */
    uint32_t turn;          /* how many buckets were added to sums: see page_sums_take() */
    struct partition_runs { /* owned array, an element for each partition */
        struct remembered_runs runs;
        struct run_sums *sums; /* owned array, an element for each run */
    } * of;
};

/* Find the runs in the covers of @parts, which must be planned, and the tables of @kind that are
 * remembered of them.  False: no memory.  pages_memory_release() must follow in either case. */
bool pages_memory_begin(struct pages_memory *memory, struct proved_read *r, enum key_kind kind,
    const struct part_set *parts);
void pages_memory_release(struct pages_memory *memory);

/* The run that has bucket @i of the partition's cover; NULL: none has. */
struct remembered_run *pages_memory_run(
    const struct pages_memory *memory, unsigned partition, size_t i);

/* What was read of @run. */
struct run_sums *pages_memory_sums(
    const struct pages_memory *memory, unsigned partition, const struct remembered_run *run);

/* The name under which a run's own sums have @page of bucket @i, counted from the run's first one.
 * For a page that is @page itself.  What a cap put together has another name, in @text, for each
 * bucket: so each of its entries in the table is of one bucket, and tells how much lies in
 * which. */
#define RUN_PAGE_MAX (EVENT_PAGE_MAX + sizeof(uint32_t))
struct slice pages_memory_own_name(struct slice page, size_t i, char text[static RUN_PAGE_MAX]);

/* May more pages be added to @sums, of a run of @n buckets?  If not, the table is given up: it
 * would be too large to keep. */
bool pages_memory_has_room(const struct pages_memory *memory, struct run_sums *sums, size_t n);

/* The table of a run that was recalled, or whose buckets are all read.  Then the table is set to be
 * remembered, too, if one proof stands for it.  The table lives until the next call.  False: no
 * memory. */
bool pages_memory_table(struct pages_memory *memory, unsigned partition, struct remembered_run *run,
    struct slice *ret_table);

#endif
