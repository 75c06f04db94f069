/* filter_job.h - named Bloom filters: what can be asked of them.
 *
 * Layer: storage, public: plain values.  A filter belongs to a site and has a name
 * ([A-Za-z0-9._-]{1,64}, checked by the caller).
 *
 * A small filter (up to 4 MiB) is what RedisBloom's would be, bit for bit, a very
 * small one's errors included: below some 1/bits no error rate can be kept.  A larger one is cut
 * into shards, one a partition, each a filter of its own for the items that hash to it, so that a
 * cluster shares the load.
 *
 * `add` is atomic an item: of any number of racing adders of one new item exactly one is told that
 * it was new.  It is not atomic over items.
 */
#ifndef STORAGE_JOB_FILTER_JOB_H
#define STORAGE_JOB_FILTER_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/slice.h"
#include "storage/sketch/bloom.h" /* the bounds of capacity and error */

#define FILTER_NAME_MAX         64
#define FILTER_ITEMS_MAX        1000
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

/* Of an item, written by FILTER_ADD and FILTER_CHECK. */
enum filter_answer {
    FILTER_NO,      /* add: it was there already; check: it is not */
    FILTER_YES,     /* add: it was new; check: it is there, or a false positive */
    FILTER_REFUSED, /* add: the filter is full and does not grow; nothing was done */
    FILTER_PENDING, /* private to storage */
};

struct filter_job {
    enum filter_action action;
    struct slice site, name;
    uint64_t capacity; /* 1..BLOOM_CAPACITY_MAX */
    double error;
    unsigned expansion;
    const struct slice *items; /* FILTER_ADD, FILTER_CHECK */
    size_t n_items;
    unsigned char *answers; /* n_items of enum filter_answer, the caller's */

    /* Written by storage. */
    enum filter_outcome outcome;
    bool created;                  /* FILTER_CREATE */
    struct filter_figures {        /* FILTER_CREATE, FILTER_INFO */
        uint64_t capacity;         /* of all layers */
        uint64_t items;            /* that were new when they were added */
        uint64_t layers;           /* of the shard that has the most */
        uint64_t bytes;            /* of all layers' bits, used or not yet */
        unsigned hashes;           /* bits an item, in the newest layer */
        uint64_t created_capacity; /* as it was created */
        unsigned expansion;        /* as it was created */
        double error;              /* as it was created */
        double fill;               /* share of the bits that are set, expected from items */
        double false_positives;    /* rate, expected from items */
    } figures;
};

#endif
