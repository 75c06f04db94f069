/* merge_activity_state.h - users, and the bits of their days, while they are merged.
 *
 * Layer: storage, private to merge_activity.c (merging) and merge_activity_write.c (the commands).
 */
#ifndef STORAGE_MERGE_MERGE_ACTIVITY_STATE_H
#define STORAGE_MERGE_MERGE_ACTIVITY_STATE_H

#include "storage/base/chain.h"
#include "storage/known/known_users.h"
#include "storage/schema/hashed_event.h"
#include "storage/time/day.h"

#define USERS_AT_ONCE 1000 /* users of one command: Redis does nothing else meanwhile */

/* A site, and the users of it who are asked for by name. */
struct site_users {
    const struct row_site *site;
    struct chain names, bitmaps;
    int64_t next_index;           /* the lowest index that no user of the site has in Redis */
    int64_t first_given, n_given; /* the indices that are given here */
};

/* A user who was asked for, or has an event here. */

struct active_user {
    uint32_t site;
    struct visitor_id id;
    struct slice name;
    uint32_t index;     /* USER_INDEX_NONE: the user has none yet */
    bool is_active;     /* bits of the user are set here */
    int32_t active_day; /* the newest day of the user in the bitmaps of `active` */
    uint32_t next;      /* the next user in the site's `names` */
};

/* The bitmap of an action, or of `active`, on a day of a site. */
struct day_bitmap {
    uint32_t site;
    struct slice action;
    struct activity_day day;
    struct chain bits;
    uint32_t next; /* the next bitmap of the site */
};

/* A user's bit that is set in a bitmap. */
struct day_bit {
    uint32_t bitmap, user;
    uint32_t next; /* the next bit of the bitmap */
};

struct merge_activity {
    struct site_users *sites;
    struct active_user *users;
    struct day_bitmap *bitmaps;
    struct day_bit *bits;
    size_t n_sites, n_users, n_bitmaps, n_bits;
    size_t sites_capacity, users_capacity, bitmaps_capacity, bits_capacity;
    struct index user_index, bitmap_index, bit_index;

    /* The next answer belongs to this site, of which so many questions are answered, and begins
     * with this user. */
    size_t taken_site, taken_questions;
    uint32_t taken_user;
};

#endif
