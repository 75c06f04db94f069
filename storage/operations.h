/* operations.h - the table of what reader threads can be asked to do.
 *
 * Layer: storage.  Constant, so thread-safe.  The list that it is made of is in read/operation.h.
 */
#ifndef STORAGE_OPERATIONS_H
#define STORAGE_OPERATIONS_H

#include "storage/read/operation.h"

/* One operation; see OPERATIONS for what the members mean. */
struct operation {
    operation_run_fn *run; /* NULL: not for reader threads */
    bool again;
    enum operation_after after;
    operation_same_fn *same; /* NULL, and so are the others: each job has its own answer */
    operation_hash_fn *hash;
    operation_share_fn *share;
    operation_own_fn *own;
};

/* Does its reader see to what is counted, before it is run? */
static inline bool operation_settles(const struct operation *operation)
{
    return operation->after == AFTER_COUNTED || operation->after == AFTER_SAFE;
}

/* By enum storage_op. */
extern const struct operation storage_operations[STORAGE_OPS];

#endif
