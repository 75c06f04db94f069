/* partition_marks.h - partitions of a cluster that are marked for what was last seen of them.
 *
 * Layer: storage.  Thread-safe.
 *
 * There are two sets of marks (core.h):
 *
 *     lost_states   a partition that has no state.  The states are made at the first start only
 *                   (prepare.h).  A partition that has none later has lost it, with all that was
 *                   counted there, or its slot is torn between two nodes.  What touches the
 *                   partition fails, until `tallyd cluster reset-partition` gives it a first state
 *                   again.
 *     open_slots    a partition that was not counted the last time, because its slot is half moved
 */
#ifndef STORAGE_CORE_PARTITION_MARKS_H
#define STORAGE_CORE_PARTITION_MARKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "storage/schema/partition.h"

/* Zeroed: no partition is marked. */
struct partition_marks {
    _Atomic uint64_t words[(PARTITIONS_MAX + 63) / 64];
};

/* Mark @partition, or take its mark away.  Returns whether that has changed anything. */
bool partition_marks_note(struct partition_marks *marks, unsigned partition, bool is_marked);

/* The first marked partition from @partition on; PARTITIONS_MAX: there is none. */
unsigned partition_marks_next(const struct partition_marks *marks, unsigned partition);

#endif
