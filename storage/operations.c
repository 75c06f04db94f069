#include "storage/operations.h"

#define ALONE(op, run, again, after) [op] = {run, again, after, NULL, NULL, NULL, NULL},
#define SHARED(op, run, again, after, same, hash, share, own)                                      \
    [op] = {run, again, after, same, hash, share, own},

const struct operation storage_operations[STORAGE_OPS] = {OPERATIONS(ALONE, SHARED)};
