/* known_hashes.h - what is known to be so, by its hash, in bounded memory.
 *
 * Layer: storage, pure.  One owner.
 *
 * Of something that comes again and again and need not be asked for, or done, each time, a hash of
 * 8 bytes is remembered.  What is remembered is so; what is not remembered may be so all the same,
 * because in a set of four that is full one hash replaces another.  The memory is 512 KB, given
 * with the first hash.
 *
 * The upper bits of a hash are to be spread evenly.  Two things with one hash are taken for one:
 * the caller chooses a hash with which that does no harm.
 */
#ifndef STORAGE_BASE_KNOWN_HASHES_H
#define STORAGE_BASE_KNOWN_HASHES_H

#include <stdbool.h>
#include <stdint.h>

#define KNOWN_HASHES 65536

/* Zeroed it is empty. */
struct known_hashes {
    uint64_t *hashes; /* owned; KNOWN_HASHES of them, 0: none */
    uint32_t turn;    /* which one of a full set is replaced */
};

bool known_hashes_has(const struct known_hashes *known, uint64_t hash);

/* Remember; no memory: it is not remembered, which does no harm. */
void known_hashes_add(struct known_hashes *known, uint64_t hash);

/* Forget all and keep the memory; or free the memory too. */
void known_hashes_forget(struct known_hashes *known);
void known_hashes_release(struct known_hashes *known);

#endif
