#include "storage/base/known_hashes.h"

#include <stdlib.h>
#include <string.h>

bool known_hashes_has(const struct known_hashes *known, uint64_t hash)
{
    return known->hashes != NULL && hash != 0 && known->hashes[hash % KNOWN_HASHES] == hash;
}

void known_hashes_add(struct known_hashes *known, uint64_t hash)
{
    if (known->hashes == NULL) {
        known->hashes = calloc(KNOWN_HASHES, sizeof(*known->hashes));
    }
    if (known->hashes != NULL) {
        known->hashes[hash % KNOWN_HASHES] = hash;
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
