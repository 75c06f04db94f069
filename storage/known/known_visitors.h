/* known_visitors.h - which users' visits Redis is likely to remember, with their indices.
 *
 * Layer: storage, pure.  Thread-safe, except known_visitors_init() and _release(): the threads of a
 * fold share this memory, so each profits by what another one has learnt of a partition.
 *
 * A user who is asked for by name is found in a hash of all users there ever were.  What Redis
 * remembers of a visit has the user's index, too (merge_visits.h), and is asked for anyway.  So a
 * user whose visit is remembered need not be asked for by name.  This memory tells which users to
 * expect there, and in which slot: 16 bits a user, 1 MB.  That is a guess.  A user who is not found
 * there is taken out of the memory, and the share begins again; a user whom the memory lacks is
 * asked for by name.
 *
 * What Redis remembers of a visit expires with the visit's slot, so the slot is part of what is
 * known.  When the first user comes in a new slot, marks older than the slot before are taken out:
 * a walk over all marks, once a slot.
 */
#ifndef STORAGE_KNOWN_KNOWN_VISITORS_H
#define STORAGE_KNOWN_KNOWN_VISITORS_H

#include <stdatomic.h>
#include <stdint.h>

#include "storage/schema/identity.h"

#define KNOWN_VISITORS (1 << 19)

struct known_visitors {
    _Atomic uint16_t *marks; /* owned; KNOWN_VISITORS of them, 0: none */
    _Atomic int64_t newest;  /* a slot: marks are of this one and of the one before */
    atomic_uint turn;
};

/* Where Redis is expected to have a user's visit, with the index. */
enum known_visit { VISIT_ANYWHERE, VISIT_IN_SLOT, VISIT_IN_SLOT_BEFORE };

/* If memory is out, no user is ever known, which does no harm. */
void known_visitors_init(struct known_visitors *known);
void known_visitors_release(struct known_visitors *known);

/* Forget all users: the data may have gone back. */
void known_visitors_forget(struct known_visitors *known);

/* Is a visit of user @id expected in @slot, in which an event of the user arrived, or in the slot
 * before? */
enum known_visit known_visitors_find(
    struct known_visitors *known, const struct visitor_id *id, int64_t slot);

/* Redis has a visit of user @id in @slot, with the index. */
void known_visitors_add(struct known_visitors *known, const struct visitor_id *id, int64_t slot);

/* Redis has no visit of user @id with the index. */
void known_visitors_drop(struct known_visitors *known, const struct visitor_id *id);

#endif
