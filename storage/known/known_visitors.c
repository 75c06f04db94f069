#include "storage/known/known_visitors.h"

#include <stdlib.h>
#include <string.h>

#define WAYS  4
#define SLOTS 7 /* told apart: not a divisor of 24, for many come at the same hour each day */

void known_visitors_release(struct known_visitors *known)
{
    free(known->marks);
    *known = (struct known_visitors){0};
}

void known_visitors_forget(struct known_visitors *known)
{
    if (known->marks != NULL) {
        memset(known->marks, 0, KNOWN_VISITORS * sizeof(*known->marks));
    }
}

/* The id is uniform.  Its second half chose the partition, its first byte the stripe. */
static uint16_t *set_of(const struct known_visitors *known, const struct visitor_id *id)
{
    uint32_t hash;
    memcpy(&hash, id->bytes + 1, sizeof(hash));
    return &known->marks[hash % (KNOWN_VISITORS / WAYS) * WAYS];
}

/* The upper 13 bits of a mark are the user's, the others the slot's. */
static uint16_t user_bits(const struct visitor_id *id)
{
    return (uint16_t)(id->bytes[6] << 8 | (id->bytes[7] & 0xf8));
}

static uint16_t mark_of(const struct visitor_id *id, int64_t slot)
{
    return (uint16_t)(user_bits(id) | (slot % SLOTS + 1));
}

bool known_visitors_has(
    const struct known_visitors *known, const struct visitor_id *id, int64_t slot)
{
    if (known->marks == NULL) {
        return false;
    }
    const uint16_t *set = set_of(known, id);
    const uint16_t now = mark_of(id, slot);
    const uint16_t before = mark_of(id, slot - 1);
    for (unsigned i = 0; i < WAYS; i++) {
        if (set[i] == now || set[i] == before) {
            return true;
        }
    }
    return false;
}

/* That of the user, or else of nobody, or else of another. */
static uint16_t *place_for(struct known_visitors *known, const struct visitor_id *id)
{
    uint16_t *set = set_of(known, id);
    uint16_t *empty = NULL;
    for (unsigned i = 0; i < WAYS; i++) {
        if (set[i] != 0 && (set[i] & 0xfff8) == user_bits(id)) {
            return &set[i];
        }
        empty = set[i] == 0 ? &set[i] : empty;
    }
    return empty != NULL ? empty : &set[known->turn++ % WAYS];
}

void known_visitors_add(struct known_visitors *known, const struct visitor_id *id, int64_t slot)
{
    if (known->marks == NULL) {
        known->marks = calloc(KNOWN_VISITORS, sizeof(*known->marks));
    }
    if (known->marks != NULL) { /* else the user is asked for by name */
        *place_for(known, id) = mark_of(id, slot);
    }
}

void known_visitors_drop(struct known_visitors *known, const struct visitor_id *id)
{
    uint16_t *set = known->marks == NULL ? NULL : set_of(known, id);
    for (unsigned i = 0; set != NULL && i < WAYS; i++) {
        set[i] = (set[i] & 0xfff8) == user_bits(id) ? 0 : set[i];
    }
}
