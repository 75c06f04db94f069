/* listed_keys.h - the keys that an answer is made of: counted by level and, with explain, listed.
 *
 * Layer: storage.  One owner.
 *
 * A user is told that a plan uses a coarse bucket only where that is rolled up.  A plan also uses
 * coarse buckets so far ahead that no event can be there (time/cover.h), because nothing need be
 * read for them.  Such a bucket is told as the minutes that stand for it, as long as these are not
 * too many.
 */
#ifndef STORAGE_READ_LISTED_KEYS_H
#define STORAGE_READ_LISTED_KEYS_H

#include "storage/job/job.h"
#include "storage/schema/key.h"

#define COUNTED_KEYS_MAX 50000 /* planned for a list; up to here the future is told by minutes */
/* Bytes of pages' names in listed keys.  The answer is made in one go, by a thread that has others
 * to serve. */
#define COUNTED_BYTES_MAX ((size_t)8 * 1024 * 1024)

struct counted_keys {
    uint32_t *per_level;       /* LEVELS */
    struct counted_key **keys; /* NULL: they are not listed; else *keys has *n, and is owned */
    size_t *n;
    size_t *page_bytes; /* of the pages' names in those listed */
    int64_t now_s;      /* Redis's clock when it was read */
};

/* A bucket's key, or with n_pages > 1 the keys of so many pages: see key_bucket() in
 * schema/key.h. */
struct counted_bucket {
    const char *tag;
    enum key_kind kind;
    struct slice site;
    const struct slice *const *pages;
    size_t n_pages;
    struct bucket bucket;
};

/* Count the keys, and list them.  STORAGE_NOMEM; STORAGE_TOO_BROAD: more would be listed than
 * may. */
enum storage_err counted_keys_add(struct counted_keys *counted, const struct counted_bucket *what);

/* Put them in order of time, then of their names. */
void counted_keys_sort(struct counted_key *keys, size_t n);

#endif
