/* kept_tables.h - the tables of a run that several partitions have, in one value.
 *
 * Layer: storage, private to pages/memory.c.  Belongs to a reader thread; what is remembered is
 * shared (read/cache.h).
 *
 * A question about all pages of a site reads each run in each partition.  A value of the cache
 * takes 80 bytes beside what it holds, and short runs of most partitions have less than that.  So
 * the value is the run's, and has a part for each partition:
 *
 *     head (proof, partition, bytes)   table (pages/table.h)   head   table   ..
 *
 * Each part has its own proof, a hash of the id under which it was read.  After a late event in one
 * partition the parts of the others are still true.
 */
#ifndef STORAGE_PAGES_KEPT_TABLES_H
#define STORAGE_PAGES_KEPT_TABLES_H

#include "storage/read/run.h"

/* The parts of one run. */
struct kept_table {
    struct bucket first; /* of the run.. */
    int64_t end_s;       /* ..and where it ends */
    struct cache_id id;
    struct buffer parts;
    uint32_t *at; /* owned: where in parts each partition's table begins; 0: there is none */
    bool changed; /* it is not remembered like this */
    bool holes;   /* some parts were replaced */
};

struct kept_tables {
    struct cache *cache;
    unsigned n_partitions;
    size_t most;                /* bytes of one value */
    size_t room;                /* so many bytes may still be put */
    struct cache_id name;       /* of all of them: read/run.h */
    struct kept_table **all;    /* owned */
    size_t n, capacity, likely; /* the one that is likely asked for next */
};

/* Begin with tables of @name, of partitions below @n_partitions.  A value takes at most @most
 * bytes, and all that is put @room.  Release in any case. */
void kept_tables_begin(struct kept_tables *tables, struct cache *cache, struct cache_id name,
    unsigned n_partitions, size_t most, size_t room);
void kept_tables_release(struct kept_tables *tables);

/* The table of @run of @cover, with the parts that are remembered.  NULL: no memory. */
struct kept_table *kept_tables_find(
    struct kept_tables *tables, const struct cover *cover, const struct remembered_run *run);

/* Is there a part of @partition that was read under @proof, a ver_hash()?  0 proves nothing. */
bool kept_table_proved(const struct kept_table *table, unsigned partition, uint64_t proof);

/* That part.  It lives until the next kept_tables_put(). */
struct slice kept_table_part(const struct kept_table *table, unsigned partition);

/* Set the part of @partition in @table, in place of an older one.  Nothing is done where there is
 * no room for it.  Without memory there is no part then. */
void kept_tables_put(struct kept_tables *tables, struct kept_table *table, unsigned partition,
    uint64_t proof, struct slice part);

/* Remember all parts that are new, beside those that were there. */
void kept_tables_keep(struct kept_tables *tables);

#endif
