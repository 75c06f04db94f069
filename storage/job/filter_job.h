/* filter_job.h - named Bloom filters: what can be asked of them.
 *
 * Layer: storage, public: plain values.
 *
 * A Bloom filter says of an item whether it was added before: "no" is certain, "yes" is wrong at a
 * small rate, the filter's error.  A filter belongs to a site and has a name.
 *
 * A small filter, of up to 4 MiB, is the same as RedisBloom's, bit for bit.  So are its errors: no
 * filter can keep an error rate below about 1/bits.  A larger filter is cut into shards, one a
 * partition, so that the nodes of a cluster share the load.  A shard is a filter of its own for the
 * items that hash to it.
 *
 * FILTER_ADD is atomic for each item.  If several clients add one new item at the same time,
 * exactly one of them is told that it was new.  It is not atomic for all items together.
 */
#ifndef STORAGE_JOB_FILTER_JOB_H
#define STORAGE_JOB_FILTER_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/slice.h"
#include "storage/sketch/bloom.h" /* the bounds of capacity and error */

#define FILTER_NAME_MAX         64   /* bytes */
#define FILTER_ITEMS_MAX        1000 /* items of one job */
#define FILTER_CAPACITY_DEFAULT 10000
#define FILTER_ERROR_DEFAULT    0.01

enum filter_action {
    FILTER_CREATE, /* with the parameters given */
    FILTER_INFO,
    FILTER_DROP,
    FILTER_ADD, /* an unknown filter is created, with the parameters given */
    FILTER_CHECK,
};

enum filter_outcome {
    FILTER_DONE,
    FILTER_ABSENT,  /* there is no such filter */
    FILTER_DIFFERS, /* FILTER_CREATE: there is one, with other parameters */
};

/* What storage answers for an item:
 *
 *                      FILTER_ADD                          FILTER_CHECK
 *     FILTER_NO        it was there already                it is not there
 *     FILTER_YES       it was new                          it is there, or a false positive
 *     FILTER_REFUSED   the filter is full and does not     -
 *                      grow; nothing was done
 */
enum filter_answer {
    FILTER_NO,
    FILTER_YES,
    FILTER_REFUSED,
    FILTER_PENDING, /* private to storage */
};

/* Input and result of STORAGE_FILTER_READ (FILTER_INFO, FILTER_CHECK) and STORAGE_FILTER_WRITE. */
struct filter_job {
    enum filter_action action;
    struct slice site, name;   /* the name: [A-Za-z0-9._-]{1,64}, checked by the caller */
    uint64_t capacity;         /* items: 1..BLOOM_CAPACITY_MAX */
    double error;              /* BLOOM_ERROR_MIN..BLOOM_ERROR_MAX */
    unsigned expansion;        /* 0: the filter does not grow */
    const struct slice *items; /* FILTER_ADD, FILTER_CHECK */
    size_t n_items;
    unsigned char *answers; /* n_items of enum filter_answer, the caller's; storage writes them */

    /* Written by storage. */
    enum filter_outcome outcome;
    bool created;                  /* FILTER_CREATE */
    struct filter_figures {        /* FILTER_CREATE, FILTER_INFO */
        uint64_t capacity;         /* of all layers */
        uint64_t items;            /* items that were new when they were added */
        uint64_t layers;           /* layers of the shard that has the most */
        uint64_t bytes;            /* of all layers' bits, used or not yet */
        unsigned hashes;           /* bits that an item sets, in the newest layer */
        uint64_t created_capacity; /* as the filter was created */
        unsigned expansion;        /* as the filter was created */
        double error;              /* as the filter was created */
        double fill;               /* share of the bits that are set, expected from items */
        double false_positives;    /* rate of false positives, expected from items */
    } figures;
};

#endif
