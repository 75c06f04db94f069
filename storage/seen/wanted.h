/* wanted.h - the pages that a question about a user asks for, and which of them were found.
 *
 * Layer: storage, pure.  Not thread-safe: a struct wanted belongs to one question.
 *
 * A page is a fingerprint here (layout.h).  A log of 16,384 fingerprints is looked through once,
 * however many pages are asked for: each fingerprint in the log is looked up among the pages.
 */
#ifndef STORAGE_SEEN_WANTED_H
#define STORAGE_SEEN_WANTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/compiler.h"
#include "storage/base/index.h"

struct wanted_page {
    uint64_t fingerprint;
    uint32_t first; /* the first page with the same fingerprint: as a rule this page itself */
    bool found;     /* only of a first page: it was found */
};

/* The pages of a question.  Zeroed: there is none. */
struct wanted {
    struct wanted_page *pages; /* owned; in the order in which they were added */
    size_t n;
    size_t n_first, n_found; /* pages that differ, and those of them that were found */
    struct index index;      /* of first pages */
};

void wanted_release(struct wanted *wanted);

/* Make room for @n pages in all.  False: out of memory. */
bool wanted_expect(struct wanted *wanted, size_t n) MUST_CHECK;

/* Add a page, for which there is room. */
void wanted_add(struct wanted *wanted, uint64_t fingerprint);

/* Note that page @i is found. */
void wanted_find(struct wanted *wanted, size_t i);

/* Find the pages whose fingerprint is in a log of @n bytes. */
void wanted_find_in_log(struct wanted *wanted, const char *log, size_t n);

static inline bool wanted_found(const struct wanted *wanted, size_t i)
{
    return wanted->pages[wanted->pages[i].first].found;
}

#endif
