#include "storage/pages/kept_tables.h"

#include <stdlib.h>
#include <string.h>

#include "storage/base/index.h"

struct head {
    uint64_t proof;
    uint32_t partition;
    uint32_t n; /* bytes of the table */
};

#define SCRATCH_KEPT ((size_t)64 * 1024)
#define ROOM_MAX     ((size_t)1 << 30) /* bytes: places are 32 bits */

void kept_tables_begin(struct kept_tables *tables, struct cache *cache, struct cache_id name,
    unsigned n_partitions, size_t most, size_t room)
{
    *tables = (struct kept_tables){.cache = cache,
        .n_partitions = n_partitions,
        .most = most < ROOM_MAX ? most : ROOM_MAX,
        .room = room < ROOM_MAX ? room : ROOM_MAX,
        .name = name};
}

static void table_free(struct kept_table *table)
{
    if (table != NULL) {
        buffer_release(&table->parts);
        free(table->at);
        free(table);
    }
}

void kept_tables_release(struct kept_tables *tables)
{
    for (size_t i = 0; i < tables->n; i++) {
        table_free(tables->all[i]);
    }
    free(tables->all);
    *tables = (struct kept_tables){0};
}

/* Note where the parts are that came from the cache. */
static void find_parts(struct kept_table *table, unsigned n_partitions)
{
    struct head head;
    for (size_t at = 0; table->parts.n - at >= sizeof(head); at += sizeof(head) + head.n) {
        memcpy(&head, table->parts.p + at, sizeof(head));
        if (head.partition < n_partitions) {
            table->at[head.partition] = (uint32_t)(at + sizeof(head));
        }
    }
}

static struct kept_table *load(
    struct kept_tables *tables, const struct cover *cover, const struct remembered_run *run)
{
    struct kept_table *table = calloc(1, sizeof(*table));
    if (table == NULL) {
        return NULL;
    }
    buffer_init(&table->parts);
    table->first = cover->buckets[run->first];
    table->end_s = cover->buckets[run->first + run->n - 1].end_s;
    table->id = run_id(tables->cache, &tables->name, cover, run);
    table->at = calloc(tables->n_partitions, sizeof(*table->at));
    if (table->at != NULL) {
        (void)cache_get(tables->cache, &table->id, &cache_no_proof, cache_append_to, &table->parts);
    }
    if (table->at == NULL || table->parts.failed ||
        !array_reserve(&tables->all, &tables->capacity, tables->n, sizeof(struct kept_table *))) {
        table_free(table);
        return NULL;
    }
    find_parts(table, tables->n_partitions);
    tables->all[tables->n++] = table;
    return table;
}

static bool is_of(
    const struct kept_table *table, const struct cover *cover, const struct remembered_run *run)
{
    struct bucket first = cover->buckets[run->first];
    return table->first.level == first.level && table->first.start_s == first.start_s &&
           table->end_s == cover->buckets[run->first + run->n - 1].end_s;
}

/* Partitions are mostly planned alike, so they ask for the same tables in the same order. */
struct kept_table *kept_tables_find(
    struct kept_tables *tables, const struct cover *cover, const struct remembered_run *run)
{
    for (size_t i = 0; i < tables->n; i++) {
        size_t k = (tables->likely + i) % tables->n;
        if (is_of(tables->all[k], cover, run)) {
            tables->likely = k + 1;
            return tables->all[k];
        }
    }
    tables->likely = 0;
    return load(tables, cover, run);
}

/* ---- parts ---- */

/* Of a part that is there. */
static struct head head_of(const struct kept_table *table, unsigned partition)
{
    struct head head;
    memcpy(&head, table->parts.p + table->at[partition] - sizeof(head), sizeof(head));
    return head;
}

bool kept_table_proved(const struct kept_table *table, unsigned partition, uint64_t proof)
{
    return proof != 0 && table->at[partition] != 0 && head_of(table, partition).proof == proof;
}

struct slice kept_table_part(const struct kept_table *table, unsigned partition)
{
    return (struct slice){table->parts.p + table->at[partition], head_of(table, partition).n};
}

void kept_tables_put(struct kept_tables *tables, struct kept_table *table, unsigned partition,
    uint64_t proof, struct slice part)
{
    struct head head = {proof, partition, (uint32_t)part.n};
    size_t at = table->parts.n + sizeof(head);
    if (part.n > tables->room || sizeof(head) > tables->room - part.n) {
        return;
    }
    tables->room -= sizeof(head) + part.n;
    table->holes = table->holes || table->at[partition] != 0;
    table->changed = true;
    buffer_append(&table->parts, (const char *)&head, sizeof(head));
    buffer_append(&table->parts, part.p, part.n);
    table->at[partition] = table->parts.failed ? 0 : (uint32_t)at;
}

/* The parts without those that were replaced. */
static void close_holes(const struct kept_table *table, unsigned n_partitions, struct buffer *ret)
{
    for (unsigned p = 0; p < n_partitions; p++) {
        if (table->at[p] != 0) {
            struct head head = head_of(table, p);
            buffer_append(ret, table->parts.p + table->at[p] - sizeof(head), sizeof(head) + head.n);
        }
    }
}

void kept_tables_keep(struct kept_tables *tables)
{
    struct buffer whole;
    buffer_init(&whole);
    for (size_t i = 0; i < tables->n; i++) {
        struct kept_table *table = tables->all[i];
        const struct buffer *parts = &table->parts;
        if (!table->changed || table->parts.failed) {
            continue;
        }
        if (table->holes) {
            buffer_clear(&whole, SCRATCH_KEPT);
            close_holes(table, tables->n_partitions, &whole);
            parts = &whole;
        }
        if (!parts->failed && parts->n <= tables->most) {
            cache_put(tables->cache, &table->id, &cache_no_proof, parts->p, parts->n);
        }
        table->changed = false;
    }
    buffer_release(&whole);
}
