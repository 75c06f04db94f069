#include "storage/known/known_counts.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(crypto_shorthash_siphashx24_BYTES == KNOWN_NAME_BYTES, "128 bits");
_Static_assert(crypto_shorthash_siphashx24_KEYBYTES == KNOWN_NAME_BYTES, "a hash is a key");

void known_counts_init(struct known_counts *known, unsigned n_partitions)
{
    *known = (struct known_counts){.size = KNOWN_COUNTS_MIN};
    while ((uint64_t)known->size * 2 * n_partitions <= KNOWN_COUNTS) {
        known->size *= 2;
    }
    randombytes_buf(known->key, sizeof(known->key));
}

void known_counts_release(struct known_counts *known)
{
    for (unsigned p = 0; p < PARTITIONS_MAX; p++) {
        free(known->parts[p].slots);
        known->parts[p] = (struct known_part){0};
    }
}

static void part_clear(struct known_part *part, uint32_t size)
{
    if (part->n > 0) {
        memset(part->slots, 0, size * sizeof(*part->slots));
    }
    part->n = 0;
}

void known_counts_take(struct known_counts *known, unsigned partition, uint64_t id, int64_t now_ms)
{
    struct known_part *part = &known->parts[partition];
    if (id == 0 || part->id != id || now_ms < part->now_ms) {
        part_clear(part, known->size);
        part->id = 0;
    }
    part->now_ms = now_ms;
}

void known_counts_hold(struct known_counts *known, unsigned partition, uint64_t id)
{
    known->parts[partition].id = id;
}

void known_bucket_init(struct known_bucket *bucket, struct known_counts *known, unsigned partition,
    const char *key, size_t n)
{
    bucket->known = known;
    bucket->part = &known->parts[partition];
    crypto_shorthash_siphashx24(bucket->key, (const unsigned char *)key, n, known->key);
}

static void name_hash(
    const struct known_bucket *bucket, struct slice name, uint8_t ret[KNOWN_NAME_BYTES])
{
    crypto_shorthash_siphashx24(ret, (const unsigned char *)name.p, name.n, bucket->key);
}

/* The name's slot, or the empty one where it belongs. */
static struct known_count *slot_of(
    const struct known_bucket *bucket, const uint8_t name[KNOWN_NAME_BYTES])
{
    uint32_t mask = bucket->known->size - 1;
    uint32_t at;
    memcpy(&at, name, sizeof(at));
    struct known_count *slot = &bucket->part->slots[at & mask];
    while (slot->value != 0 && memcmp(slot->name, name, KNOWN_NAME_BYTES) != 0) {
        slot = &bucket->part->slots[++at & mask];
    }
    return slot;
}

uint64_t known_bucket_find(const struct known_bucket *bucket, struct slice name)
{
    uint8_t hash[KNOWN_NAME_BYTES];
    if (bucket->part->n == 0) {
        return 0;
    }
    name_hash(bucket, name, hash);
    return slot_of(bucket, hash)->value;
}

void known_bucket_set(const struct known_bucket *bucket, struct slice name, uint64_t value)
{
    struct known_part *part = bucket->part;
    uint32_t size = bucket->known->size;
    struct known_count is = {.value = value};
    if (part->slots == NULL) {
        part->slots = calloc(size, sizeof(*part->slots));
    }
    if (part->slots == NULL || value == 0) {
        return;
    }
    name_hash(bucket, name, is.name);
    struct known_count *slot = slot_of(bucket, is.name);
    if (slot->value == 0 && part->n++ >= size / 4 * 3) {
        part_clear(part, size);
        part->n = 1;
        slot = slot_of(bucket, is.name);
    }
    *slot = is;
}
