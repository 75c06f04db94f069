#include "storage/operations.h"

#define ALONE(op, run, again)                     [op] = {run, again, NULL, NULL, NULL},
#define SHARED(op, run, again, same, hash, share) [op] = {run, again, same, hash, share},

const struct operation storage_operations[STORAGE_OPS] = {OPERATIONS(ALONE, SHARED)};
