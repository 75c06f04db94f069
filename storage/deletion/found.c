#include "storage/deletion/found.h"

#include <stdlib.h>
#include <string.h>

#include "storage/base/index.h"
#include "storage/schema/key.h"

#define BUCKET_TEXT 13 /* bytes: a letter and YYYYMMDDhhmm */

/* Kinds of keys that have a site's name behind the kind's. */
static const struct kind {
    const char *name;
    bool is_sketch; /* a bucket and a page follow the site */
    bool is_table;  /* a bucket follows: fields of the key are pages */
} kinds[] = {
    {"uv", true, false},
    {"ip", true, false},
    {"pv", false, true},
    {"vv", false, true},
    {"visit", false, false},
    {"places", false, false},
    {"uid", false, false},
    {"ids", false, false},
    {"act", false, false},
    {"seen", false, false},
    {"bf", false, false},
    {"bfs", false, false},
    {"bfl", false, false},
    {"sets", false, false},
};

/* The partition whose tag stands in @braced, "{tag}".  PARTITIONS_MAX: there is none. */
static unsigned found_partition(const struct partitions *partitions, struct slice braced)
{
    if (braced.n < 2 || braced.p[0] != '{' || braced.p[braced.n - 1] != '}') {
        return PARTITIONS_MAX;
    }
    struct slice tag = {braced.p + 1, braced.n - 2};
    for (unsigned p = 0; p < partitions->n; p++) {
        if (slice_equal(tag, slice_of(partitions->tag[p]))) {
            return p;
        }
    }
    return PARTITIONS_MAX;
}

static bool has_page(const struct deletion_target *target, struct slice page)
{
    return target->is_prefix ? slice_begins(page, target->page) : slice_equal(page, target->page);
}

/* What is to be done with a key of @kind, in which @rest follows the site. */
static enum found_kind found_of_pages(
    const struct kind *kind, const struct deletion_target *target, struct slice rest)
{
    if (kind->is_table && rest.n == BUCKET_TEXT) {
        return rest.p[0] == 'm' ? FOUND_HASH : FOUND_ZSET;
    }
    if (!kind->is_sketch || rest.n <= BUCKET_TEXT || rest.p[BUCKET_TEXT] != ':') {
        return FOUND_NOTHING;
    }
    struct slice page = {rest.p + BUCKET_TEXT + 1, rest.n - BUCKET_TEXT - 1};
    return has_page(target, page) ? FOUND_KEY : FOUND_NOTHING;
}

enum found_kind found_judge(const struct partitions *partitions,
    const struct deletion_target *target, struct slice key, unsigned *ret_partition)
{
    if (!slice_equal(slice_until(&key, ':'), SLICE("t"))) {
        return FOUND_NOTHING;
    }
    unsigned partition = found_partition(partitions, slice_until(&key, ':'));
    struct slice name = slice_until(&key, ':');
    struct slice site = slice_until(&key, ':');
    if (partition == PARTITIONS_MAX || !slice_equal(site, target->site)) {
        return FOUND_NOTHING;
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (slice_equal(name, slice_of(kinds[i].name))) {
            *ret_partition = partition;
            return target->page.n == 0 ? FOUND_KEY : found_of_pages(&kinds[i], target, key);
        }
    }
    return FOUND_NOTHING;
}

void found_prefix_pattern(struct buffer *out, struct slice prefix)
{
    for (size_t i = 0; i < prefix.n; i++) {
        if (strchr("*?[]^\\", prefix.p[i]) != NULL) {
            buffer_text(out, "\\");
        }
        buffer_append(out, prefix.p + i, 1);
    }
    buffer_text(out, "*");
}

/* ---- lists ---- */

void found_release(struct found_list *list)
{
    buffer_release(&list->bytes);
    free(list->all);
}

bool found_add(struct found_list *list, struct slice text, enum found_kind kind, unsigned partition)
{
    if (!array_reserve(&list->all, &list->capacity, list->n, sizeof(*list->all))) {
        return false;
    }
    list->all[list->n++] = (struct found_text){kind, partition, list->bytes.n, text.n};
    buffer_append(&list->bytes, text.p, text.n);
    return !list->bytes.failed;
}

struct slice found_get(const struct found_list *list, size_t i)
{
    return (struct slice){list->bytes.p + list->all[i].from, list->all[i].n};
}

/* By partition and kind. */
static int compare_found(const void *a, const void *b)
{
    const struct found_text *x = a;
    const struct found_text *y = b;
    if (x->partition != y->partition) {
        return x->partition < y->partition ? -1 : 1;
    }
    return (x->kind > y->kind) - (x->kind < y->kind);
}

void found_sort(struct found_list *list)
{
    if (list->n > 0) {
        qsort(list->all, list->n, sizeof(*list->all), compare_found);
    }
}
