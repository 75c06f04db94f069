#include "storage/base/known_hashes.h"

#include <stdlib.h>
#include <string.h>

#define WAYS     4
#define SET_BITS 14

_Static_assert(KNOWN_HASHES == WAYS << SET_BITS, "the sets are all of it");

/* The set goes by the upper bits: those of a product depend on all bits of its factors, while the
 * lower ones do not. */
static uint64_t *set_of(const struct known_hashes *known, uint64_t hash)
{
    return &known->hashes[(hash >> (64 - SET_BITS)) * WAYS];
}

bool known_hashes_has(const struct known_hashes *known, uint64_t hash)
{
    if (known->hashes == NULL || hash == 0) {
        return false;
    }
    const uint64_t *set = set_of(known, hash);
    return set[0] == hash || set[1] == hash || set[2] == hash || set[3] == hash;
}

void known_hashes_add(struct known_hashes *known, uint64_t hash)
{
    if (known->hashes == NULL) {
        known->hashes = calloc(KNOWN_HASHES, sizeof(*known->hashes));
    }
    if (known->hashes == NULL || known_hashes_has(known, hash)) {
        return;
    }
    uint64_t *set = set_of(known, hash);
    unsigned at = 0;
    while (at < WAYS && set[at] != 0) {
        at++;
    }
    set[at < WAYS ? at : known->turn++ % WAYS] = hash;
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
