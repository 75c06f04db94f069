/* listed_keys.h - which keys an answer is made of: counted by level and, with explain, listed.
 *
 * Layer: storage.  One owner.
 *
 * As users are told, a cover uses a coarse bucket only at or below its watermark.  What lies so far
 * ahead that no event can be there is planned coarse all the same (cover.h), so that nothing is
 * read for it; it is told as the minutes that stand for it, as long as these are not too many.
 */
#ifndef STORAGE_READ_LISTED_KEYS_H
#define STORAGE_READ_LISTED_KEYS_H

#include "storage/job/job.h"
#include "storage/schema/key.h"

#define COUNTED_KEYS_MAX 50000 /* planned for a list; up to here the future is told by minutes */
/* Of the pages' names in listed keys: the answer is made at one go, by a thread that has others to
 * serve. */
#define COUNTED_BYTES_MAX ((size_t)8 * 1024 * 1024)

struct counted_keys {
    uint32_t *per_level;       /* LEVELS */
    struct counted_key **keys; /* NULL: they are not listed; else *keys has *n, and is owned */
    size_t *n;
    size_t *page_bytes; /* of the pages' names in those listed */
    int64_t now_s;      /* Redis's clock when it was read */
};

/* A bucket's key, or with @n_pages > 1 the keys of so many pages: see key_bucket. */
struct counted_bucket {
    const char *tag;
    enum key_kind kind;
    struct slice site;
    const struct slice *const *pages;
    size_t n_pages;
    struct bucket bucket;
};

/* STORAGE_NOMEM; STORAGE_TOO_BROAD: more would be listed than may be. */
enum storage_err counted_keys_add(struct counted_keys *counted, const struct counted_bucket *what);

/* Put them in order of time, then of their names. */
void counted_keys_sort(struct counted_key *keys, size_t n);

#endif
