/* found.h - which keys of Redis belong to what is deleted.
 *
 * Layer: storage, pure.  Thread-safe: no state.  Source: schema/key.h.
 *
 * Keys are found by SCAN, whose pattern is only a hint: a page may be named like the key of another
 * site.  So each name is taken apart.
 */
#ifndef STORAGE_DELETION_FOUND_H
#define STORAGE_DELETION_FOUND_H

#include "storage/base/buffer.h"
#include "storage/base/compiler.h"
#include "storage/job/deletion_job.h"
#include "storage/schema/partition.h"

/* What is to be done with a key. */
enum found_kind {
    FOUND_NOTHING,
    FOUND_KEY,  /* the key is deleted */
    FOUND_HASH, /* the key is a hash that loses the fields of the target's pages */
    FOUND_ZSET, /* the key is a sorted set that loses the members of the target's pages */
};

/* Decide what is to be done with @key.  *ret_partition: the partition of the key, unless the result
 * is FOUND_NOTHING. */
enum found_kind found_judge(const struct partitions *partitions,
    const struct deletion_target *target, struct slice key, unsigned *ret_partition) MUST_CHECK;

/* Append a pattern for SCAN of names that begin with @prefix. */
void found_prefix_pattern(struct buffer *out, struct slice prefix);

struct found_text {
    enum found_kind kind;
    unsigned partition;
    size_t from, n; /* in the list's bytes */
};

/* A list of texts that replies had, copied so that they outlive the replies.  Not thread-safe: one
 * owner.  Zeroed: the list is empty. */
struct found_list {
    struct buffer bytes;
    struct found_text *all; /* owned */
    size_t n, capacity;
};

void found_release(struct found_list *list);

/* Copy @text to the end.  False: out of memory. */
bool found_add(struct found_list *list, struct slice text, enum found_kind kind,
    unsigned partition) MUST_CHECK;

struct slice found_get(const struct found_list *list, size_t i);

/* Sort the list by partition and kind. */
void found_sort(struct found_list *list);

#endif
