/* lost_states.h - which partitions of a cluster have no state, as far as is known.
 *
 * Layer: storage.  Thread-safe.
 *
 * The states are made at the first start only (prepare.h).  A partition that has none later has
 * lost it, with all that was counted there, or its slot is torn between two nodes.  What touches
 * the partition fails, until `tallyd cluster reset-partition` gives it a first state again.
 */
#ifndef STORAGE_CORE_LOST_STATES_H
#define STORAGE_CORE_LOST_STATES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "storage/schema/partition.h"

/* Zeroed: none is known. */
struct lost_states {
    _Atomic uint64_t words[(PARTITIONS_MAX + 63) / 64];
};

/* A reply has said whether @partition has a state.  Returns whether that is news. */
bool lost_states_note(struct lost_states *states, unsigned partition, bool is_lost);

/* The first partition from @partition on that has none; PARTITIONS_MAX: there is no such one. */
unsigned lost_states_next(const struct lost_states *states, unsigned partition);

#endif
