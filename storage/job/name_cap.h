/* name_cap.h - how many names of a class one partition holds in a bucket.
 *
 * Layer: storage, public: plain values.  Thread-safe: no state.
 *
 * The fold enforces the cap for hours (places/places.h), the rollup for days and months
 * (rollup/together.h).
 */
#ifndef STORAGE_JOB_NAME_CAP_H
#define STORAGE_JOB_NAME_CAP_H

#include "storage/job/config.h"
#include "storage/job/counted_name.h"

/* Can the class of @name have a cap?  The whole site, sections, what was put together, and sums
 * over visits have none. */
static inline bool name_has_cap(struct slice name)
{
    return name.n > 0 && counted_name_mark(name) <= NAME_MARK_VALUE;
}

/* The cap of the class of @name in each of @n_partitions; 0: no cap.  @starts: the cap is for the
 * tables of visits, where a page lies in each partition of visitors.  Other names that are spread
 * over the partitions are spread unevenly, so each partition may hold twice its share. */
static inline uint64_t name_cap(
    const struct storage_config *config, unsigned n_partitions, struct slice name, bool starts)
{
    if (!name_has_cap(name)) {
        return 0;
    }
    char mark = counted_name_mark(name);
    uint64_t all = mark == NAME_MARK_EVENT   ? config->max_events
                   : mark == NAME_MARK_VALUE ? config->max_values
                                             : config->max_pages;
    if (mark == NAME_MARK_VALUE || starts || n_partitions == 1) {
        return all;
    }
    return (2 * all + n_partitions - 1) / n_partitions;
}

#endif
