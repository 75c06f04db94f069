#include "storage/known/known_visitors.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define WAYS  4
#define SLOTS 3 /* told apart: two of them have marks, and the next one shall be another */
#define EMPTY 0

/* The upper 14 bits of a mark are the user's, the others the slot's. */
#define USER_BITS 0xfffc

void known_visitors_init(struct known_visitors *known)
{
    known->marks = calloc(KNOWN_VISITORS, sizeof(*known->marks));
    atomic_init(&known->newest, 0);
    atomic_init(&known->turn, 0);
}

void known_visitors_release(struct known_visitors *known)
{
    free(known->marks);
    known->marks = NULL;
}

/* One mark says nothing of another, so their order is of no account. */
static uint16_t mark_at(const _Atomic uint16_t *at)
{
    return atomic_load_explicit(at, memory_order_relaxed);
}

static void set_mark(_Atomic uint16_t *at, uint16_t mark)
{
    atomic_store_explicit(at, mark, memory_order_relaxed);
}

void known_visitors_forget(struct known_visitors *known)
{
    for (size_t i = 0; known->marks != NULL && i < KNOWN_VISITORS; i++) {
        set_mark(&known->marks[i], EMPTY);
    }
}

/* The id is uniform.  Its second half chose the partition, its first byte the stripe. */
static _Atomic uint16_t *set_of(const struct known_visitors *known, const struct visitor_id *id)
{
    uint32_t hash;
    memcpy(&hash, id->bytes + 1, sizeof(hash));
    return &known->marks[hash % (KNOWN_VISITORS / WAYS) * WAYS];
}

static uint16_t user_bits(const struct visitor_id *id)
{
    return (uint16_t)((id->bytes[6] << 8 | id->bytes[7]) & USER_BITS);
}

static uint16_t slot_bits(int64_t slot)
{
    return (uint16_t)((uint64_t)slot % SLOTS + 1);
}

static uint16_t mark_of(const struct visitor_id *id, int64_t slot)
{
    return user_bits(id) | slot_bits(slot);
}

/* The first one has come in @slot: what is older than the slot before has expired.  So marks are of
 * two slots that follow each other, and an older one has the bits of the next. */
static void move_on(struct known_visitors *known, int64_t slot)
{
    int64_t was = atomic_load_explicit(&known->newest, memory_order_relaxed);
    if (slot <= was || !atomic_compare_exchange_strong(&known->newest, &was, slot)) {
        return; /* or another thread does it */
    }
    for (size_t i = 0; i < KNOWN_VISITORS; i++) {
        uint16_t bits = mark_at(&known->marks[i]) & (uint16_t)~USER_BITS;
        if (bits != EMPTY && (slot - was > 1 || bits == slot_bits(slot + 1))) {
            set_mark(&known->marks[i], EMPTY);
        }
    }
}

/* Is it a mark of the user? */
static bool is_of(uint16_t mark, const struct visitor_id *id)
{
    return mark != EMPTY && (mark & USER_BITS) == user_bits(id);
}

enum known_visit known_visitors_find(
    struct known_visitors *known, const struct visitor_id *id, int64_t slot)
{
    if (known->marks == NULL) {
        return VISIT_ANYWHERE;
    }
    move_on(known, slot);
    const _Atomic uint16_t *set = set_of(known, id);
    for (unsigned i = 0; i < WAYS; i++) {
        uint16_t mark = mark_at(&set[i]);
        if (mark == mark_of(id, slot)) {
            return VISIT_IN_SLOT;
        }
        if (mark == mark_of(id, slot - 1)) {
            return VISIT_IN_SLOT_BEFORE;
        }
    }
    return VISIT_ANYWHERE;
}

/* That of the user, or else of nobody, or else of another. */
static _Atomic uint16_t *place_for(struct known_visitors *known, const struct visitor_id *id)
{
    _Atomic uint16_t *set = set_of(known, id);
    _Atomic uint16_t *empty = NULL;
    for (unsigned i = 0; i < WAYS; i++) {
        uint16_t mark = mark_at(&set[i]);
        if (is_of(mark, id)) {
            return &set[i];
        }
        empty = mark == EMPTY ? &set[i] : empty;
    }
    return empty != NULL
               ? empty
               : &set[atomic_fetch_add_explicit(&known->turn, 1, memory_order_relaxed) % WAYS];
}

void known_visitors_add(struct known_visitors *known, const struct visitor_id *id, int64_t slot)
{
    if (known->marks == NULL) {
        return; /* the user is asked for by name */
    }
    move_on(known, slot);
    if (slot >= atomic_load_explicit(&known->newest, memory_order_relaxed) - 1) {
        set_mark(place_for(known, id), mark_of(id, slot));
    }
}

void known_visitors_drop(struct known_visitors *known, const struct visitor_id *id)
{
    _Atomic uint16_t *set = known->marks == NULL ? NULL : set_of(known, id);
    for (unsigned i = 0; set != NULL && i < WAYS; i++) {
        if (is_of(mark_at(&set[i]), id)) {
            set_mark(&set[i], EMPTY);
        }
    }
}
