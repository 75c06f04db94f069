/* memory.h - what a fold knows of Redis's data, so that it need not ask.
 *
 * Layer: storage, pure.  Belongs to the thread of a lane (fold/lanes.h), except struct
 * shared_memory.
 */
#ifndef STORAGE_KNOWN_MEMORY_H
#define STORAGE_KNOWN_MEMORY_H

#include "storage/base/known_hashes.h"
#include "storage/known/known_counts.h"
#include "storage/known/known_sketches.h"
#include "storage/known/known_users.h"
#include "storage/known/known_visitors.h"
#include "storage/schema/partition.h"

/* What all transactions of a fold know together, on whatever thread.  Each part says how it is
 * shared. */
struct shared_memory {
    struct known_visitors visitors;
    struct known_counts counts; /* see merge_counts_write() */
};

/* What the transactions of one connection know; it holds for as long as the connection lives. */
struct fold_memory {
    struct known_users users;          /* users whose visits do not tell their indices */
    struct shared_memory *shared;      /* outlives the connection; not owned */
    struct known_hashes hashes;        /* of names that have places (places_begin()), of keys
                                          that have expiries (merge_counts_write()), and of
                                          members that the sets `open` and `sites` have */
    struct known_sketches sketches;    /* see merge_counts_write() */
    uint8_t near_caps[PARTITIONS_MAX]; /* so many further shares expect a cap: share_fits() */
    char id[33];                       /* a random text that begins each new id */
    uint64_t n_ids;                    /* the number that ended the last new id */
};

void fold_memory_release(struct fold_memory *memory);

/* Forget which keys there are: some may be gone. */
void fold_memory_forget_keys(struct fold_memory *memory);

/* @n_partitions are those of the data set. */
void shared_memory_init(struct shared_memory *shared, unsigned n_partitions);
void shared_memory_forget(struct shared_memory *shared);
void shared_memory_release(struct shared_memory *shared);

/* Forget all but what is shared: the data may have gone back, or may be another's. */
void fold_memory_forget(struct fold_memory *memory);

#endif
