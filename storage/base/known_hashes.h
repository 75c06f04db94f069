/* known_hashes.h - facts that are known to be true, remembered by their hashes in bounded memory.
 *
 * Layer: storage, pure.  Not thread-safe: one owner.
 *
 * A fact that comes up again and again, such as that a key has its expiry, need not be asked for or
 * made true each time: a hash of 8 bytes is remembered of it.  A fact that is remembered is true;
 * one that is not remembered may be true all the same, because in a set of four that is full one
 * hash replaces another.  The memory is 512 KB, allocated with the first hash.
 *
 * The upper bits of a hash must be spread evenly.  Two facts with one hash are taken for one: the
 * caller chooses a hash with which that does no harm.
 */
#ifndef STORAGE_BASE_KNOWN_HASHES_H
#define STORAGE_BASE_KNOWN_HASHES_H

#include <stdbool.h>
#include <stdint.h>

#define KNOWN_HASHES 65536

/* A set of hashes.  Zeroed: it is empty. */
struct known_hashes {
    uint64_t *hashes; /* owned; KNOWN_HASHES of them, 0: none */
    uint32_t turn;    /* which one of a full set is replaced */
};

bool known_hashes_has(const struct known_hashes *known, uint64_t hash);

/* Remember @hash.  Without memory it is not remembered, which does no harm. */
void known_hashes_add(struct known_hashes *known, uint64_t hash);

/* Forget all hashes and keep the memory, or free the memory too. */
void known_hashes_forget(struct known_hashes *known);
void known_hashes_release(struct known_hashes *known);

#endif
