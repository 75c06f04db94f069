/* known_users.h - indices of users that Redis is known to have given, and whose bits are set.
 *
 * Layer: storage, pure.  Belongs to the thread of a lane (fold/lanes.h).
 *
 * A user who is known need not be looked up by name again, and an event of a user whose bit for
 * `active` and that day is set sets nothing.  Users go by their 128-bit keyed hash, which has the
 * site in it.  The memory is bounded: 512 KB, given when the first user comes.  A user has a place
 * in one set of four, where a full set replaces one of its users.
 *
 * What is known of a partition holds for one generation of its users (field `users` of
 * t:{p}:state, "-" at first), which is changed whenever a user is forgotten: a fold that relied on
 * another generation asks again.  All is dropped when a connection was lost or Redis's data may
 * have gone back.
 */
#ifndef STORAGE_KNOWN_KNOWN_USERS_H
#define STORAGE_KNOWN_KNOWN_USERS_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/schema/identity.h"
#include "storage/schema/partition.h"

#define KNOWN_USERS_MAX  16384
#define USERS_GENERATION 32         /* bytes of a generation's name, at most */
#define USER_INDEX_NONE  UINT32_MAX /* no user has this index */
#define ACTIVE_DAY_NONE  INT32_MIN  /* no day */

struct known_user {
    struct visitor_id id;
    uint32_t index;
    uint32_t era;       /* see known_users.partitions; 0: the slot is empty */
    int32_t active_day; /* the user's bit of `active` is set for this day since 1970-01-01 */
};

/* Zeroed it is empty. */
struct known_users {
    struct known_user *slots; /* owned */
    uint32_t eras, turn;
    struct {
        uint32_t era; /* slots of this era hold */
        char generation[USERS_GENERATION + 1];
    } partitions[PARTITIONS_MAX];
};

void known_users_release(struct known_users *users);

/* What is known of user @id, valid until the next known_users_add().  NULL: nothing. */
const struct known_user *known_users_find(
    const struct known_users *users, unsigned partition, const struct visitor_id *id);

/* Redis said that a partition's users are of @generation.  If that is another one than before, what
 * was known is dropped. */
void known_users_generation(struct known_users *users, unsigned partition, struct slice generation);

/* The generation for which the partition's users are known; "" if none is. */
const char *known_users_relied_on(const struct known_users *users, unsigned partition);

/* Remember a user.  If memory is out, the user is not known next time, which does no harm. */
void known_users_add(struct known_users *users, unsigned partition, const struct visitor_id *id,
    uint32_t index, int32_t active_day);

void known_users_forget_all(struct known_users *users);

#endif
