#include "storage/core/lost_states.h"

bool lost_states_note(struct lost_states *states, unsigned partition, bool is_lost)
{
    _Atomic uint64_t *word = &states->words[partition / 64];
    uint64_t bit = UINT64_C(1) << partition % 64;
    if (((atomic_load(word) & bit) != 0) == is_lost) { /* as a rule: nothing is written */
        return false;
    }
    uint64_t before = is_lost ? atomic_fetch_or(word, bit) : atomic_fetch_and(word, ~bit);
    return ((before & bit) != 0) != is_lost;
}

unsigned lost_states_next(const struct lost_states *states, unsigned partition)
{
    for (; partition < PARTITIONS_MAX; partition++) {
        if ((atomic_load(&states->words[partition / 64]) >> partition % 64 & 1) != 0) {
            return partition;
        }
    }
    return PARTITIONS_MAX;
}
