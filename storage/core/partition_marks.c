#include "storage/core/partition_marks.h"

bool partition_marks_note(struct partition_marks *marks, unsigned partition, bool is_marked)
{
    _Atomic uint64_t *word = &marks->words[partition / 64];
    uint64_t bit = UINT64_C(1) << partition % 64;
    if (((atomic_load(word) & bit) != 0) == is_marked) { /* the common case writes nothing */
        return false;
    }
    uint64_t before = is_marked ? atomic_fetch_or(word, bit) : atomic_fetch_and(word, ~bit);
    return ((before & bit) != 0) != is_marked;
}

unsigned partition_marks_next(const struct partition_marks *marks, unsigned partition)
{
    for (; partition < PARTITIONS_MAX; partition++) {
        if ((atomic_load(&marks->words[partition / 64]) >> partition % 64 & 1) != 0) {
            return partition;
        }
    }
    return PARTITIONS_MAX;
}
