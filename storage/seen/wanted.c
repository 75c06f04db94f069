#include "storage/seen/wanted.h"

#include <stdlib.h>
#include <string.h>

/* The context of a look-up in the index. */
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

bool wanted_expect(struct wanted *wanted, size_t n)
{
    struct wanted_page *pages = reallocarray(wanted->pages, n, sizeof(*pages));
    if (pages == NULL) {
        return false;
    }
    wanted->pages = pages;
    return index_expect(&wanted->index, n);
}

void wanted_add(struct wanted *wanted, uint64_t fingerprint)
{
    uint32_t i = (uint32_t)wanted->n;
    struct lookup lookup = {wanted, fingerprint};
    wanted->pages[i] = (struct wanted_page){.fingerprint = fingerprint, .first = i};
    struct index_slot *slot = index_find(&wanted->index, fingerprint, same, &lookup);
    if (slot->item == INDEX_NONE) {
        index_set(&wanted->index, slot, fingerprint, i);
        wanted->n_first++;
    } else {
        wanted->pages[i].first = slot->item;
    }
    wanted->n++;
}

void wanted_find(struct wanted *wanted, size_t i)
{
    struct wanted_page *first = &wanted->pages[wanted->pages[i].first];
    wanted->n_found += first->found ? 0 : 1;
    first->found = true;
}

/* A sieve has one bit for each fingerprint, which is a hash: with 1,000 pages in the sieve, 6 of
 * 100 other fingerprints pass. */
#define SIEVE_BITS 16384
#define LONG_LOG   1024 /* bytes: for a shorter log a sieve is not worth making */
struct sieve {
    uint64_t words[SIEVE_BITS / 64];
};

static bool passes(const struct sieve *sieve, uint64_t fingerprint)
{
    return (sieve->words[fingerprint % SIEVE_BITS / 64] >> fingerprint % 64 & 1) != 0;
}

static void make_sieve(struct sieve *sieve, const struct wanted *wanted)
{
    memset(sieve, 0, sizeof(*sieve));
    for (size_t i = 0; i < wanted->n; i++) {
        uint64_t fingerprint = wanted->pages[i].fingerprint;
        sieve->words[fingerprint % SIEVE_BITS / 64] |= UINT64_C(1) << fingerprint % 64;
    }
}

static void find_one(struct wanted *wanted, uint64_t fingerprint)
{
    struct lookup lookup = {wanted, fingerprint};
    const struct index_slot *slot = index_find(&wanted->index, fingerprint, same, &lookup);
    if (slot->item != INDEX_NONE) {
        wanted_find(wanted, slot->item);
    }
}

void wanted_find_in_log(struct wanted *wanted, const char *log, size_t n)
{
    struct sieve sieve;
    uint64_t fingerprint;
    bool sieves = n >= LONG_LOG;
    if (sieves) {
        make_sieve(&sieve, wanted);
    }
    for (size_t at = 0; at + sizeof(fingerprint) <= n && wanted->n_found < wanted->n_first;
         at += sizeof(fingerprint)) {
        memcpy(&fingerprint, log + at, sizeof(fingerprint));
        if (!sieves || passes(&sieve, fingerprint)) {
            find_one(wanted, fingerprint);
        }
    }
}
