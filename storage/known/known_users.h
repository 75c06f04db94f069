/* known_users.h - indices of users that Redis is known to have given, and whose bits are set.
 *
 * Layer: storage, pure.  Belongs to the fold's thread.
 *
 * A bounded memory: a user in it need not be looked up by name again, and an event of a user whose
 * bit for `active` and that day is set sets nothing.  Users go by their 128-bit keyed hash, which
 * has the site in it.  512 KB, given when the first user comes; the memory of a set of four that is
 * full replaces one of them.
 *
 * What is known of a partition holds for one generation of its users (field `users` of
 * t:{p}:state, "-" at first), which is changed whenever a user is forgotten: a fold that relied on
 * another one asks again.  All is dropped when a connection was lost or Redis's data may have gone
 * back.
 */
#ifndef STORAGE_KNOWN_KNOWN_USERS_H
#define STORAGE_KNOWN_KNOWN_USERS_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/schema/identity.h"
#include "storage/schema/partition.h"

#define KNOWN_USERS_MAX  16384
#define USERS_GENERATION 32         /* bytes of a generation's name, at most */
#define USER_INDEX_NONE  UINT32_MAX /* no user has this one */
#define ACTIVE_DAY_NONE  INT32_MIN

struct known_user {
    struct visitor_id id;
    uint32_t index;
    uint32_t era;       /* 0: empty */
    int32_t active_day; /* days since 1970-01-01; the bit of `active` is set */
};

/* Zeroed it is empty. */
struct known_users {
    struct known_user *slots; /* owned */
    uint32_t eras, turn;
    struct {
        uint32_t era; /* of the entries that hold */
        char generation[USERS_GENERATION + 1];
    } partitions[PARTITIONS_MAX];
};

void known_users_release(struct known_users *users);

/* NULL: not known. */
const struct known_user *known_users_find(
    const struct known_users *users, unsigned partition, const struct visitor_id *id);

/* Redis said in which generation a partition is.  Another one than before: what was known is
 * dropped. */
void known_users_generation(struct known_users *users, unsigned partition, struct slice generation);

/* That generation; "" if nothing is known. */
const char *known_users_relied_on(const struct known_users *users, unsigned partition);

/* Remember; no memory: it is not known next time, which does no harm. */
void known_users_add(struct known_users *users, unsigned partition, const struct visitor_id *id,
    uint32_t index, int32_t active_day);

void known_users_forget_all(struct known_users *users);

#endif
