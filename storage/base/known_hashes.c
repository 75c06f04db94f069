#include "storage/base/known_hashes.h"

#include <stdlib.h>
#include <string.h>

#define WAYS     4
#define SET_BITS 14

_Static_assert(KNOWN_HASHES == WAYS << SET_BITS, "the sets are all of it");

/* The set in which @hash belongs.  The upper bits choose the set: in a product they depend on all
 * bits of the factors, while the lower ones do not. */
static uint64_t *set_of(const struct known_hashes *known, uint64_t hash)
{
    return &known->hashes[(hash >> (64 - SET_BITS)) * WAYS];
}

bool known_hashes_has(const struct known_hashes *known, uint64_t hash)
{
    bool has = false;
    for (unsigned i = 0; known->hashes != NULL && hash != 0 && i < WAYS; i++) {
        has = has || set_of(known, hash)[i] == hash;
    }
    return has;
}

/* The place for @hash: its own, else an empty one, else the one that is replaced next. */
static uint64_t *place_for(struct known_hashes *known, uint64_t hash)
{
    uint64_t *set = set_of(known, hash);
    for (unsigned i = 0; i < WAYS; i++) {
        if (set[i] == hash ||
            set[i] == 0) { /* no hash is removed alone, so behind an empty place all are empty */
            return &set[i];
        }
    }
    return &set[known->turn++ % WAYS];
}

void known_hashes_add(struct known_hashes *known, uint64_t hash)
{
    if (known->hashes == NULL) {
        known->hashes = calloc(KNOWN_HASHES, sizeof(*known->hashes));
    }
    if (known->hashes != NULL) {
        *place_for(known, hash) = hash;
    }
}

void known_hashes_forget(struct known_hashes *known)
{
    if (known->hashes != NULL) {
        memset(known->hashes, 0, KNOWN_HASHES * sizeof(*known->hashes));
    }
}

void known_hashes_release(struct known_hashes *known)
{
    free(known->hashes);
    known->hashes = NULL;
}
