#include "storage/seen/wanted.h"

#include <stdlib.h>
#include <string.h>

/* What a look compares. */
struct lookup {
    const struct wanted *wanted;
    uint64_t fingerprint;
};

static bool same(const void *context, uint32_t item)
{
    const struct lookup *lookup = context;
    return lookup->wanted->pages[item].fingerprint == lookup->fingerprint;
}

void wanted_release(struct wanted *wanted)
{
    free(wanted->pages);
    index_release(&wanted->index);
    *wanted = (struct wanted){.pages = NULL};
}

bool wanted_add(struct wanted *wanted, uint64_t fingerprint)
{
    uint32_t i = (uint32_t)wanted->n;
    struct lookup lookup = {wanted, fingerprint};
    if (!array_reserve(&wanted->pages, &wanted->capacity, wanted->n, sizeof(*wanted->pages)) ||
        !index_reserve(&wanted->index)) {
        return false;
    }
    wanted->pages[i] = (struct wanted_page){.fingerprint = fingerprint, .first = i};
    struct index_slot *slot = index_find(&wanted->index, fingerprint, same, &lookup);
    if (slot->item == INDEX_NONE) {
        index_set(&wanted->index, slot, fingerprint, i);
        wanted->n_first++;
    } else {
        wanted->pages[i].first = slot->item;
    }
    wanted->n++;
    return true;
}

void wanted_find(struct wanted *wanted, size_t i)
{
    struct wanted_page *first = &wanted->pages[wanted->pages[i].first];
    wanted->n_found += first->found ? 0 : 1;
    first->found = true;
}

void wanted_find_in_log(struct wanted *wanted, const char *log, size_t n)
{
    struct lookup lookup = {.wanted = wanted};
    bool alone = wanted->n == 1; /* then a comparison is cheaper than a look */
    for (size_t at = 0; at + sizeof(lookup.fingerprint) <= n && wanted->n_found < wanted->n_first;
         at += sizeof(lookup.fingerprint)) {
        memcpy(&lookup.fingerprint, log + at, sizeof(lookup.fingerprint));
        if (alone) {
            if (lookup.fingerprint == wanted->pages[0].fingerprint) {
                wanted_find(wanted, 0);
            }
            continue;
        }
        const struct index_slot *slot =
            index_find(&wanted->index, lookup.fingerprint, same, &lookup);
        if (slot->item != INDEX_NONE) {
            wanted_find(wanted, slot->item);
        }
    }
}
