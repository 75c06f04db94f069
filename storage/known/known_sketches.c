#include "storage/known/known_sketches.h"

#include <stdlib.h>
#include <string.h>

#define STALE_MS 5000

void known_sketches_release(struct known_sketches *known)
{
    for (size_t i = 0; i < KNOWN_SKETCHES; i++) {
        free(known->sketches[i]);
    }
    *known = (struct known_sketches){0};
}

void known_sketches_forget(struct known_sketches *known)
{
    memset(known->hashes, 0, sizeof(known->hashes));
}

static size_t place_of(const struct known_sketches *known, uint64_t hash)
{
    size_t i = 0;
    while (i < KNOWN_SKETCHES && known->hashes[i] != hash) {
        i++;
    }
    return i;
}

const struct hll *known_sketches_find(const struct known_sketches *known, uint64_t hash)
{
    size_t i = hash == 0 ? KNOWN_SKETCHES : place_of(known, hash);
    return i == KNOWN_SKETCHES ? NULL : known->sketches[i];
}

/* How much the place is worth to the one who has it. */
static size_t worth(const struct known_sketches *known, size_t i, int64_t now_ms)
{
    bool idle = known->hashes[i] == 0 || now_ms - known->used_ms[i] > STALE_MS;
    return idle ? 0 : known->elements[i];
}

static size_t cheapest_place(const struct known_sketches *known, int64_t now_ms)
{
    size_t place = 0;
    for (size_t i = 1; i < KNOWN_SKETCHES; i++) {
        place = worth(known, i, now_ms) < worth(known, place, now_ms) ? i : place;
    }
    return place;
}

struct hll *known_sketches_take(
    struct known_sketches *known, uint64_t hash, size_t elements, int64_t now_ms)
{
    size_t i = hash == 0 ? KNOWN_SKETCHES : place_of(known, hash);
    if (i == KNOWN_SKETCHES) {
        i = cheapest_place(known, now_ms);
        if (hash == 0 || elements < KNOWN_SKETCHES_FEW || elements <= worth(known, i, now_ms)) {
            return NULL;
        }
        if (known->sketches[i] == NULL) {
            known->sketches[i] = malloc(sizeof(*known->sketches[i]));
        }
        if (known->sketches[i] == NULL) {
            return NULL;
        }
        hll_clear(known->sketches[i]);
        known->hashes[i] = hash;
    }
    known->elements[i] = elements;
    known->used_ms[i] = now_ms;
    return known->sketches[i];
}
