/* part_set.h - a set of partitions.
 *
 * Layer: storage, pure.  Not thread-safe: one owner.
 */
#ifndef STORAGE_SCHEMA_PART_SET_H
#define STORAGE_SCHEMA_PART_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/schema/partition.h"

#define PART_SET_WORD 64u

/* A zeroed set is empty.  Each @partition below is less than PARTITIONS_MAX. */
struct part_set {
    uint64_t words[(PARTITIONS_MAX + PART_SET_WORD - 1) / PART_SET_WORD];
};

static inline bool part_set_has(const struct part_set *set, unsigned partition)
{
    return (set->words[partition / PART_SET_WORD] >> partition % PART_SET_WORD & 1) != 0;
}

static inline void part_set_add(struct part_set *set, unsigned partition)
{
    set->words[partition / PART_SET_WORD] |= UINT64_C(1) << partition % PART_SET_WORD;
}

static inline void part_set_remove(struct part_set *set, unsigned partition)
{
    set->words[partition / PART_SET_WORD] &= ~(UINT64_C(1) << partition % PART_SET_WORD);
}

#endif
