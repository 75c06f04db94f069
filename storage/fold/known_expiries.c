#include "storage/fold/known_expiries.h"

#include <stdlib.h>
#include <string.h>

bool known_expiries_has(const struct known_expiries *known, uint64_t hash)
{
    return known->hashes != NULL && hash != 0 && known->hashes[hash % KNOWN_EXPIRIES] == hash;
}

void known_expiries_add(struct known_expiries *known, uint64_t hash)
{
    if (known->hashes == NULL) {
        known->hashes = calloc(KNOWN_EXPIRIES, sizeof(*known->hashes));
    }
    if (known->hashes != NULL) {
        known->hashes[hash % KNOWN_EXPIRIES] = hash;
    }
}

void known_expiries_forget(struct known_expiries *known)
{
    if (known->hashes != NULL) {
        memset(known->hashes, 0, KNOWN_EXPIRIES * sizeof(*known->hashes));
    }
}

void known_expiries_release(struct known_expiries *known)
{
    free(known->hashes);
    known->hashes = NULL;
}
