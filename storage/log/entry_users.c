#include "storage/log/entry_users.h"

#include <stdlib.h>
#include <string.h>

#include "storage/base/arena.h"
#include "storage/log/chunk.h"
#include "storage/log/entry.h"
#include "storage/schema/partition.h"

#define BITS_MIN   512
#define BITS_EVENT 16

/* Call @take for each event of @chunks.  False: out of memory. */
static bool each_event(struct slice chunks, entry_event_fn *take, void *data)
{
    struct chunk_reader reader;
    chunk_reader_init(&reader, chunks);
    while (chunk_next(&reader)) {
        while (chunk_next_event(&reader)) {
            take(data, &reader.event);
        }
    }
    bool ok = !reader.failed; /* this process has made the bytes, so memory is out */
    chunk_reader_release(&reader);
    return ok;
}

bool entry_each_near(
    const struct log_entry *entry, struct slice text, entry_event_fn *take, void *data)
{
    bool ok = true;
    struct arena arena = {0};
    for (size_t i = 0; ok && i <= entry->n_keyed; i++) {
        struct slice chunks;
        ok = entry_chunks(entry, i, &arena, &chunks) == PACKED_OK;
        if (ok && chunks.n > 0 && memmem(chunks.p, chunks.n, text.p, text.n) != NULL) {
            ok = each_event(chunks, take, data);
        }
    }
    arena_release(&arena);
    return ok;
}

/* ---- the filter ---- */

/* Bit @i of 0 and 1 of the user with @hash.  The two come of bits of the hash that are 30 apart. */
static uint64_t user_bit(const struct entry_users *users, uint64_t hash, unsigned i)
{
    return hash >> 30 * i & (users->n_bits - 1);
}

static void add_user(void *data, const struct chunk_event *event)
{
    struct entry_users *users = data;
    if (event->user.n > 0) {
        uint64_t hash = page_hash(event->site, event->user);
        for (unsigned i = 0; i < 2; i++) {
            uint64_t bit = user_bit(users, hash, i);
            users->words[bit / 64] |= UINT64_C(1) << bit % 64;
        }
    }
}

static struct entry_users *users_make(const struct log_entry *entry)
{
    uint64_t n_bits = BITS_MIN;
    while (n_bits < (uint64_t)entry_events(entry) * BITS_EVENT) {
        n_bits *= 2;
    }
    struct entry_users *users = calloc(1, sizeof(*users) + n_bits / 8);
    if (users == NULL) {
        return NULL;
    }
    users->n_bits = n_bits;
    if (!entry_each_near(entry, SLICE(""), add_user, users)) {
        free(users);
        return NULL;
    }
    return users;
}

/* The entry's filter.  NULL: out of memory. */
static const struct entry_users *users_of(struct log_entry *entry)
{
    struct entry_users *users = atomic_load(&entry->users);
    if (users == NULL) {
        struct entry_users *made = users_make(entry);
        if (made == NULL || atomic_compare_exchange_strong(&entry->users, &users, made)) {
            return made;
        }
        free(made); /* another thread was first */
    }
    return users;
}

bool entry_may_have(struct log_entry *entry, struct slice site, struct slice user)
{
    const struct entry_users *users = users_of(entry);
    if (users == NULL) {
        return true;
    }
    uint64_t hash = page_hash(site, user);
    for (unsigned i = 0; i < 2; i++) {
        uint64_t bit = user_bit(users, hash, i);
        if ((users->words[bit / 64] >> bit % 64 & 1) == 0) {
            return false;
        }
    }
    return true;
}
