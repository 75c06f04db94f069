#include "storage/fold/known_places.h"

#include <stdlib.h>
#include <string.h>

bool known_places_has(const struct known_places *known, uint64_t hash)
{
    return known->hashes != NULL && hash != 0 && known->hashes[hash % KNOWN_PLACES] == hash;
}

void known_places_add(struct known_places *known, uint64_t hash)
{
    if (known->hashes == NULL) {
        known->hashes = calloc(KNOWN_PLACES, sizeof(*known->hashes));
    }
    if (known->hashes != NULL) {
        known->hashes[hash % KNOWN_PLACES] = hash;
    }
}

void known_places_forget(struct known_places *known)
{
    if (known->hashes != NULL) {
        memset(known->hashes, 0, KNOWN_PLACES * sizeof(*known->hashes));
    }
}

void known_places_release(struct known_places *known)
{
    free(known->hashes);
    known->hashes = NULL;
}
