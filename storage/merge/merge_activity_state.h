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

#define USERS_AT_ONCE 1000 /* in a command: Redis does nothing else meanwhile */

/* A site, and the users of it who are asked for by name. */
struct site_users {
    const struct row_site *site;
    struct chain names, bitmaps;
    int64_t next_index;           /* that Redis would give now */
    int64_t first_given, n_given; /* here */
};

struct active_user {
    uint32_t site;
    struct visitor_id id;
    struct slice name;
    uint32_t index; /* USER_INDEX_NONE: has none yet */
    bool is_active; /* bits are set */
    int32_t active_day;
    uint32_t next; /* of those who are asked for by name */
};

struct day_bitmap {
    uint32_t site;
    struct slice action;
    struct activity_day day;
    struct chain bits;
    uint32_t next;
};

struct day_bit {
    uint32_t bitmap, user;
    uint32_t next;
};

struct merge_activity {
    struct site_users *sites;
    struct active_user *users;
    struct day_bitmap *bitmaps;
    struct day_bit *bits;
    size_t n_sites, n_users, n_bitmaps, n_bits;
    size_t sites_capacity, users_capacity, bitmaps_capacity, bits_capacity;
    struct index user_index, bitmap_index, bit_index;

    /* How far the answers have come. */
    size_t taken_site, taken_questions;
    uint32_t taken_user;
};

#endif
