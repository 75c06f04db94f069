/* operations.h - the table of the operations that reader threads can do.
 *
 * Layer: storage.  Constant, so thread-safe.  The table is made from the list OPERATIONS in
 * read/operation.h.
 */
#ifndef STORAGE_OPERATIONS_H
#define STORAGE_OPERATIONS_H

#include "storage/read/operation.h"

/* One operation; read/operation.h says at OPERATIONS what the members mean. */
struct operation {
    operation_run_fn *run; /* NULL: reader threads do not run the operation */
    bool again;
    enum operation_after after;
    operation_same_fn *same; /* NULL, as the three below: each job has its own answer */
    operation_hash_fn *hash;
    operation_share_fn *share;
    operation_own_fn *own;
};

/* Does the reader have acknowledged entries counted before it runs the operation? */
static inline bool operation_settles(const struct operation *operation)
{
    return operation->after == AFTER_COUNTED || operation->after == AFTER_SAFE;
}

/* All operations, by enum storage_op. */
extern const struct operation storage_operations[STORAGE_OPS];

#endif
