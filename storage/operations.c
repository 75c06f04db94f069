#include "storage/operations.h"

#define ALONE(op, run, again, settled) [op] = {run, again, settled, NULL, NULL, NULL},
#define SHARED(op, run, again, settled, same, hash, share)                                         \
    [op] = {run, again, settled, same, hash, share},

const struct operation storage_operations[STORAGE_OPS] = {OPERATIONS(ALONE, SHARED)};
