#include "storage/read/listed_keys.h"

#include <stdlib.h>

#include "storage/time/units.h"

/* Room for one more: twice as much, whenever their number is a power of two. */
static bool reserve_key(struct counted_keys *counted)
{
    size_t n = *counted->n;
    if ((n & (n - 1)) != 0) {
        return true;
    }
    size_t room = n == 0 ? 1 : n * 2;
    struct counted_key *more = realloc(*counted->keys, room * sizeof(*more));
    if (more == NULL) {
        return false;
    }
    *counted->keys = more;
    return true;
}

static enum storage_err list_keys(
    struct counted_keys *counted, const struct counted_bucket *what, struct bucket bucket)
{
    for (size_t i = 0; i < what->n_pages; i++) {
        struct key key;
        bool of_page = what->kind == KEY_UV || what->kind == KEY_IP;
        *counted->page_bytes += of_page ? what->pages[i]->n : 0;
        if (*counted->page_bytes > COUNTED_BYTES_MAX) {
            return STORAGE_TOO_BROAD;
        }
        key_bucket(&key, what->tag, what->kind, what->site, bucket, *what->pages[i]);
        char *copy = reserve_key(counted) ? malloc(key.n) : NULL;
        if (copy == NULL) {
            return STORAGE_NOMEM;
        }
        memcpy(copy, key.p, key.n);
        (*counted->keys)[(*counted->n)++] =
            (struct counted_key){.bucket = bucket, .key = copy, .n = key.n};
    }
    return STORAGE_OK;
}

static size_t keys_told(const struct counted_keys *counted)
{
    size_t n = 0;
    for (int level = 0; level < LEVELS; level++) {
        n += counted->per_level[level];
    }
    return n;
}

enum storage_err counted_keys_add(struct counted_keys *counted, const struct counted_bucket *what)
{
    struct bucket bucket = what->bucket;
    int64_t step_s = bucket.end_s - bucket.start_s;
    size_t minutes = (size_t)(step_s / MINUTE_S);
    /* what is closed is over */
    if (bucket.level != LEVEL_MINUTE && bucket.end_s > counted->now_s &&
        minutes <= COUNTED_KEYS_MAX &&
        keys_told(counted) + minutes * what->n_pages <= COUNTED_KEYS_MAX) {
        bucket.level = LEVEL_MINUTE;
        step_s = MINUTE_S;
    }
    size_t pieces = (size_t)((bucket.end_s - bucket.start_s) / step_s);
    counted->per_level[bucket.level] += (uint32_t)(pieces * what->n_pages);
    enum storage_err err = STORAGE_OK;
    for (size_t i = 0; err == STORAGE_OK && counted->keys != NULL && i < pieces; i++) {
        bucket.start_s = what->bucket.start_s + (int64_t)i * step_s;
        bucket.end_s = bucket.start_s + step_s;
        err = list_keys(counted, what, bucket);
    }
    return err;
}

static int by_time(const void *a, const void *b)
{
    const struct counted_key *x = a;
    const struct counted_key *y = b;
    if (x->bucket.start_s != y->bucket.start_s) {
        return x->bucket.start_s < y->bucket.start_s ? -1 : 1;
    }
    return slice_compare((struct slice){x->key, x->n}, (struct slice){y->key, y->n});
}

void counted_keys_sort(struct counted_key *keys, size_t n)
{
    if (n > 0) {
        qsort(keys, n, sizeof(*keys), by_time);
    }
}
