#include "storage/read/listed_keys.h"

#include <stdlib.h>
#include <string.h>

#include "storage/time/units.h"

/* Which keys are counted: those of one kind that some pages have in a partition. */
struct told {
    struct proved_read *r;
    const char *tag;
    enum key_kind kind;
    const struct slice *const *pages;
    size_t n_pages;
};

/* Make room for one more key: twice as much, whenever their number is a power of two. */
static bool reserve_key(struct window_question *asked)
{
    size_t n = asked->n_keys;
    if ((n & (n - 1)) != 0) {
        return true;
    }
    struct counted_key *more = reallocarray(asked->keys, n == 0 ? 1 : n * 2, sizeof(*more));
    if (more == NULL) {
        return false;
    }
    asked->keys = more;
    return true;
}

static enum storage_err list_keys(const struct told *told, struct bucket bucket)
{
    struct window_question *asked = told->r->asked;
    for (size_t i = 0; i < told->n_pages; i++) {
        struct key key;
        bool of_page = told->kind == KEY_UV || told->kind == KEY_IP;
        told->r->page_bytes += of_page ? told->pages[i]->n : 0;
        if (told->r->page_bytes > COUNTED_BYTES_MAX) {
            return STORAGE_TOO_BROAD;
        }
        key_bucket(&key, told->tag, told->kind, asked->site, bucket, *told->pages[i]);
        char *copy = reserve_key(asked) ? malloc(key.n) : NULL;
        if (copy == NULL) {
            return STORAGE_NOMEM;
        }
        memcpy(copy, key.p, key.n);
        asked->keys[asked->n_keys++] =
            (struct counted_key){.bucket = bucket, .key = copy, .n = key.n};
    }
    return STORAGE_OK;
}

static enum storage_err add_bucket(const struct told *told, struct bucket whole)
{
    struct window_question *asked = told->r->asked;
    struct bucket bucket = whole;
    int64_t step_s = whole.end_s - whole.start_s;
    size_t minutes = (size_t)(step_s / MINUTE_S);
    /* A coarse bucket that has not ended is not rolled up: the plan uses it because it is ahead. */
    if (bucket.level != LEVEL_MINUTE && bucket.end_s > told->r->now_s &&
        minutes - 1 <= told->r->minutes_room / told->n_pages) {
        told->r->minutes_room -= (minutes - 1) * told->n_pages;
        bucket.level = LEVEL_MINUTE;
        step_s = MINUTE_S;
    }
    size_t pieces = (size_t)((whole.end_s - whole.start_s) / step_s);
    asked->per_level[bucket.level] += (uint32_t)(pieces * told->n_pages);
    enum storage_err err = STORAGE_OK;
    for (size_t i = 0; err == STORAGE_OK && asked->explain && i < pieces; i++) {
        bucket.start_s = whole.start_s + (int64_t)i * step_s;
        bucket.end_s = bucket.start_s + step_s;
        err = list_keys(told, bucket);
    }
    return err;
}

/* Has @cover a coarse bucket that lies ahead, so that its minutes are named instead? */
static bool reaches_ahead(const struct cover *cover, int64_t now_s)
{
    bool found = false;
    for (size_t i = cover->n; !found && i > 0 && cover->buckets[i - 1].end_s > now_s; i--) {
        found = cover->buckets[i - 1].level != LEVEL_MINUTE;
    }
    return found;
}

enum storage_err listed_keys_add(struct proved_read *r, unsigned partition, enum key_kind kind,
    const struct slice *const *pages, size_t n_pages, const struct cover *cover)
{
    const struct told told = {r, r->core->partitions.tag[partition], kind, pages, n_pages};
    enum storage_err err = STORAGE_OK;
    if (!r->asked->explain && !reaches_ahead(cover, r->now_s)) {
        for (int level = 0; level < LEVELS; level++) {
            r->asked->per_level[level] += cover->per_level[level] * (uint32_t)n_pages;
        }
        return STORAGE_OK;
    }
    for (size_t i = 0; err == STORAGE_OK && i < cover->n; i++) {
        err = add_bucket(&told, cover->buckets[i]);
    }
    return err;
}

void listed_keys_clear(struct proved_read *r)
{
    counted_keys_release(&r->asked->keys, &r->asked->n_keys);
    memset(r->asked->per_level, 0, sizeof(r->asked->per_level));
    r->page_bytes = 0;
    r->minutes_room = r->keys_planned < COUNTED_KEYS_MAX ? COUNTED_KEYS_MAX - r->keys_planned : 0;
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

void listed_keys_sort(struct window_question *asked)
{
    if (asked->n_keys > 0) {
        qsort(asked->keys, asked->n_keys, sizeof(*asked->keys), by_time);
    }
}
