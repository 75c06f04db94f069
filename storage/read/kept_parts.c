#include "storage/read/kept_parts.h"

#include <stdlib.h>
#include <string.h>

#include "storage/base/index.h"

/* Stands before each part. */
struct head {
    uint64_t proof; /* ver_hash() of the id under which the part was read */
    uint32_t partition;
    uint32_t n; /* bytes of the part */
};

#define SCRATCH_KEPT ((size_t)64 * 1024) /* bytes of scratch whose memory is kept */
#define ROOM_MAX     ((size_t)1 << 30)   /* bytes: kept_run.at has 32 bits */

void kept_parts_begin(
    struct kept_parts *parts, struct proved_read *r, struct cache_id name, size_t most, size_t room)
{
    *parts = (struct kept_parts){.r = r,
        .most = most < ROOM_MAX ? most : ROOM_MAX,
        .room = room < ROOM_MAX ? room : ROOM_MAX,
        .name = name};
}

static void kept_run_free(struct kept_run *kept)
{
    if (kept != NULL) {
        buffer_release(&kept->parts);
        free(kept->at);
        free(kept);
    }
}

void kept_parts_release(struct kept_parts *parts)
{
    for (size_t i = 0; i < parts->n; i++) {
        kept_run_free(parts->all[i]);
    }
    free(parts->all);
    *parts = (struct kept_parts){0};
}

/* Note in kept->at where the parts are that came from the cache. */
static void note_parts(struct kept_run *kept, unsigned n_partitions)
{
    struct head head;
    for (size_t at = 0; kept->parts.n - at >= sizeof(head); at += sizeof(head) + head.n) {
        memcpy(&head, kept->parts.p + at, sizeof(head));
        if (head.partition < n_partitions) {
            kept->at[head.partition] = (uint32_t)(at + sizeof(head));
        }
    }
}

/* Add @run to @parts, with the parts that the cache has.  NULL: no memory. */
static struct kept_run *load(
    struct kept_parts *parts, const struct cover *cover, const struct remembered_run *run)
{
    struct cache *cache = parts->r->core->cache;
    unsigned n_partitions = parts->r->core->partitions.n;
    struct kept_run *kept = calloc(1, sizeof(*kept));
    if (kept == NULL) {
        return NULL;
    }
    buffer_init(&kept->parts);
    kept->first = cover->buckets[run->first];
    kept->end_s = cover->buckets[run->first + run->n - 1].end_s;
    kept->id = run_id(cache, &parts->name, cover, run);
    kept->at = calloc(n_partitions, sizeof(*kept->at));
    if (kept->at != NULL) {
        (void)cache_get(cache, &kept->id, &cache_no_proof, cache_append_to, &kept->parts);
    }
    if (kept->at == NULL || kept->parts.failed ||
        !array_reserve(&parts->all, &parts->capacity, parts->n, sizeof(struct kept_run *))) {
        kept_run_free(kept);
        return NULL;
    }
    note_parts(kept, n_partitions);
    parts->all[parts->n++] = kept;
    return kept;
}

static bool is_of(
    const struct kept_run *kept, const struct cover *cover, const struct remembered_run *run)
{
    struct bucket first = cover->buckets[run->first];
    return kept->first.level == first.level && kept->first.start_s == first.start_s &&
           kept->end_s == cover->buckets[run->first + run->n - 1].end_s;
}

/* Find @run in @parts, or load it.  NULL: no memory.  Most partitions are planned alike, so they
 * ask for the same runs in the same order: the search begins behind the run that was found last. */
static struct kept_run *find_run(
    struct kept_parts *parts, const struct cover *cover, const struct remembered_run *run)
{
    for (size_t i = 0; i < parts->n; i++) {
        size_t k = (parts->likely + i) % parts->n;
        if (is_of(parts->all[k], cover, run)) {
            parts->likely = k + 1;
            return parts->all[k];
        }
    }
    parts->likely = 0;
    return load(parts, cover, run);
}

/* ---- parts ---- */

/* The head of the part of @partition, which must be there. */
static struct head head_of(const struct kept_run *kept, unsigned partition)
{
    struct head head;
    memcpy(&head, kept->parts.p + kept->at[partition] - sizeof(head), sizeof(head));
    return head;
}

const struct kept_run *kept_parts_recall(struct kept_parts *parts, unsigned partition,
    const struct cover *cover, const struct remembered_run *run)
{
    struct proved_read *r = parts->r;
    uint64_t proof = proved_by(r, partition, run->proof);
    const struct kept_run *kept = find_run(parts, cover, run);
    bool found = proof != 0 && kept != NULL && kept->at[partition] != 0 &&
                 head_of(kept, partition).proof == proof;
    if (found) {
        proved_rely(r, partition, run->proof);
    }
    atomic_fetch_add(found ? &r->core->stats.cache_hits : &r->core->stats.cache_misses, 1);
    return found ? kept : NULL;
}

struct slice kept_run_part(const struct kept_run *kept, unsigned partition)
{
    return (struct slice){kept->parts.p + kept->at[partition], head_of(kept, partition).n};
}

bool kept_parts_put(struct kept_parts *parts, unsigned partition, const struct cover *cover,
    const struct remembered_run *run, struct slice part)
{
    struct proved_read *r = parts->r;
    bool may = proved_may_keep(r, partition, cover, run);
    bool has_room = part.n <= parts->room && sizeof(struct head) <= parts->room - part.n;
    struct kept_run *kept = may && has_room ? find_run(parts, cover, run) : NULL;
    if (kept == NULL) {
        return may;
    }
    struct head head = {
        ver_hash(proof_ver(&r->known[partition].view, run->proof)), partition, (uint32_t)part.n};
    size_t at = kept->parts.n + sizeof(head);
    parts->room -= sizeof(head) + part.n;
    kept->holes = kept->holes || kept->at[partition] != 0;
    kept->changed = true;
    buffer_append(&kept->parts, (const char *)&head, sizeof(head));
    buffer_append(&kept->parts, part.p, part.n);
    kept->at[partition] = kept->parts.failed ? 0 : (uint32_t)at;
    return true;
}

/* Append to @ret the parts without those that were replaced. */
static void close_holes(const struct kept_run *kept, unsigned n_partitions, struct buffer *ret)
{
    for (unsigned p = 0; p < n_partitions; p++) {
        if (kept->at[p] != 0) {
            struct head head = head_of(kept, p);
            buffer_append(ret, kept->parts.p + kept->at[p] - sizeof(head), sizeof(head) + head.n);
        }
    }
}

void kept_parts_keep(struct kept_parts *parts)
{
    struct buffer whole;
    buffer_init(&whole);
    for (size_t i = 0; i < parts->n; i++) {
        struct kept_run *kept = parts->all[i];
        const struct buffer *all = &kept->parts;
        if (!kept->changed || all->failed) {
            continue;
        }
        if (kept->holes) {
            buffer_clear(&whole, SCRATCH_KEPT);
            close_holes(kept, parts->r->core->partitions.n, &whole);
            all = &whole;
        }
        if (!all->failed && all->n <= parts->most) {
            cache_put(parts->r->core->cache, &kept->id, &cache_no_proof, all->p, all->n);
        }
        kept->changed = false;
    }
    buffer_release(&whole);
}
