/* known_expiries.h - keys that Redis is known to have an expiry of.
 *
 * Layer: storage, pure.  Belongs to the fold's thread.
 *
 * What is written late gets an expiry at once, and a key keeps its first one (PEXPIREAT NX).  An
 * import writes to the keys of an hour or a day again and again, so this memory saves a command
 * each time.
 *
 * A key is remembered by a hash of its name and of the state of its partition's rollup.  Only a
 * rollup makes a key anew, and that changes the state.  All is dropped when a connection was lost.
 * The memory is bounded: 512 KB, given with the first key; one key replaces another.
 */
#ifndef STORAGE_FOLD_KNOWN_EXPIRIES_H
#define STORAGE_FOLD_KNOWN_EXPIRIES_H

#include <stdbool.h>
#include <stdint.h>

#define KNOWN_EXPIRIES 65536

/* Zeroed it is empty. */
struct known_expiries {
    uint64_t *hashes; /* owned; KNOWN_EXPIRIES of them, 0: none */
};

/* @hash: of key and state, see above. */
bool known_expiries_has(const struct known_expiries *known, uint64_t hash);

/* Remember; no memory: it is written again, which does no harm. */
void known_expiries_add(struct known_expiries *known, uint64_t hash);

void known_expiries_forget(struct known_expiries *known);
void known_expiries_release(struct known_expiries *known);

#endif
