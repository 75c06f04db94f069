/* known_places.h - names that are known to have a place of their own in an hour.
 *
 * Layer: storage, pure.  Belongs to the fold's thread.
 *
 * Most names come again and again, and need not be asked for each time.  A name is remembered by a
 * keyed hash of partition, site, hour and name.  A place is never taken away, so what is remembered
 * stays true until the connection is lost; then all of it is dropped.  The memory is bounded: 1 MB,
 * given with the first name; one name replaces another.
 */
#ifndef STORAGE_FOLD_KNOWN_PLACES_H
#define STORAGE_FOLD_KNOWN_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#define KNOWN_PLACES 131072

/* Zeroed it is empty. */
struct known_places {
    uint64_t *hashes; /* owned; KNOWN_PLACES of them, 0: none */
};

bool known_places_has(const struct known_places *known, uint64_t hash);

/* Remember; no memory: it is asked for again, which does no harm. */
void known_places_add(struct known_places *known, uint64_t hash);

void known_places_forget(struct known_places *known);
void known_places_release(struct known_places *known);

#endif
