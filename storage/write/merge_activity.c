#include "storage/write/merge_activity.h"

#include <stdlib.h>

#include "storage/base/index.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

#define USERS_AT_ONCE 1000 /* of write.lua: unpack() is bounded */

/* Some users of a site: a part of the section. */
struct site_users {
    struct slice site;
    uint64_t site_hash;
    uint32_t first_user, last_user, n_users, n_names;
    uint32_t first_bitmap, last_bitmap, n_bitmaps;
};

struct active_user {
    uint32_t site;
    struct visitor_id id;
    struct slice name;
    uint32_t number;     /* of a row */
    uint32_t index;      /* USER_INDEX_NONE: goes by name */
    uint32_t name_place; /* from 1, among its site's names */
    int32_t active_day;
    uint32_t next;
};

struct day_bitmap {
    uint32_t site;
    struct slice action;
    struct activity_day day;
    uint32_t first_bit, last_bit, n_bits;
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
};

struct merge_activity *merge_activity_new(void)
{
    return calloc(1, sizeof(struct merge_activity));
}

void merge_activity_free(struct merge_activity *merge)
{
    if (merge != NULL) {
        free(merge->sites);
        free(merge->users);
        free(merge->bitmaps);
        free(merge->bits);
        index_release(&merge->user_index);
        index_release(&merge->bitmap_index);
        index_release(&merge->bit_index);
        free(merge);
    }
}

void merge_activity_clear(struct merge_activity *merge)
{
    merge->n_sites = merge->n_users = merge->n_bitmaps = merge->n_bits = 0;
    index_clear(&merge->user_index);
    index_clear(&merge->bitmap_index);
    index_clear(&merge->bit_index);
}

static uint64_t mix(uint64_t hash, uint64_t with)
{
    hash = (hash ^ with) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

/* The open part of the site: sites are few, the last one is looked at first. */
static uint32_t find_site(struct merge_activity *merge, const struct row *row)
{
    for (size_t i = merge->n_sites; i-- > 0;) {
        const struct site_users *site = &merge->sites[i];
        if (site->site_hash == row->site_hash && slice_equal(site->site, row->site)) {
            if (site->n_users < USERS_AT_ONCE) {
                return (uint32_t)i;
            }
            break; /* full: a further part */
        }
    }
    if (!array_reserve(
            &merge->sites, &merge->sites_capacity, merge->n_sites, sizeof(*merge->sites))) {
        return INDEX_NONE;
    }
    merge->sites[merge->n_sites] = (struct site_users){.site = row->site,
        .site_hash = row->site_hash,
        .first_user = INDEX_NONE,
        .last_user = INDEX_NONE,
        .first_bitmap = INDEX_NONE,
        .last_bitmap = INDEX_NONE};
    return (uint32_t)merge->n_sites++;
}

struct user_wanted {
    const struct merge_activity *merge;
    const struct visitor_id *id;
};

static bool same_user(const void *context, uint32_t item)
{
    const struct user_wanted *wanted = context; /* the id has the site in it */
    return memcmp(&wanted->merge->users[item].id, wanted->id, sizeof(*wanted->id)) == 0;
}

static void link_user(struct merge_activity *merge, struct site_users *site, uint32_t item)
{
    if (site->last_user == INDEX_NONE) {
        site->first_user = item;
    } else {
        merge->users[site->last_user].next = item;
    }
    site->last_user = item;
    site->n_users++;
}

static uint32_t find_user(struct merge_activity *merge, const struct row *row, uint32_t number,
    const struct known_user *known)
{
    if (!index_reserve(&merge->user_index) || !array_reserve(&merge->users, &merge->users_capacity,
                                                  merge->n_users, sizeof(*merge->users))) {
        return INDEX_NONE;
    }
    uint64_t hash;
    memcpy(&hash, row->visitor.bytes, sizeof(hash));
    struct user_wanted wanted = {merge, &row->visitor};
    struct index_slot *slot = index_find(&merge->user_index, hash, same_user, &wanted);
    if (slot->item != INDEX_NONE) {
        return slot->item;
    }
    uint32_t site_number = find_site(merge, row);
    if (site_number == INDEX_NONE) {
        return INDEX_NONE;
    }
    uint32_t item = (uint32_t)merge->n_users++;
    struct site_users *site = &merge->sites[site_number];
    merge->users[item] = (struct active_user){.site = site_number,
        .id = row->visitor,
        .name = row->user,
        .number = number,
        .index = known == NULL ? USER_INDEX_NONE : known->index,
        .name_place = known == NULL ? ++site->n_names : 0,
        .active_day = known == NULL ? ACTIVE_DAY_NONE : known->active_day,
        .next = INDEX_NONE};
    index_set(&merge->user_index, slot, hash, item);
    link_user(merge, site, item);
    return item;
}

struct bitmap_wanted {
    const struct merge_activity *merge;
    struct slice action;
    int64_t day;
    uint32_t site;
};

static bool same_bitmap(const void *context, uint32_t item)
{
    const struct bitmap_wanted *wanted = context;
    const struct day_bitmap *bitmap = &wanted->merge->bitmaps[item];
    return bitmap->site == wanted->site && bitmap->day.day == wanted->day &&
           slice_equal(bitmap->action, wanted->action);
}

static uint32_t find_bitmap(struct merge_activity *merge, uint32_t site_number, struct slice action,
    const struct activity_day *day)
{
    if (!index_reserve(&merge->bitmap_index) ||
        !array_reserve(
            &merge->bitmaps, &merge->bitmaps_capacity, merge->n_bitmaps, sizeof(*merge->bitmaps))) {
        return INDEX_NONE;
    }
    struct bitmap_wanted wanted = {merge, action, day->day, site_number};
    uint64_t hash = mix(page_hash(SLICE(""), action), (uint64_t)day->day << 20 ^ site_number);
    struct index_slot *slot = index_find(&merge->bitmap_index, hash, same_bitmap, &wanted);
    if (slot->item != INDEX_NONE) {
        return slot->item;
    }
    struct site_users *site = &merge->sites[site_number];
    uint32_t item = (uint32_t)merge->n_bitmaps++;
    merge->bitmaps[item] = (struct day_bitmap){.site = site_number,
        .action = action,
        .day = *day,
        .first_bit = INDEX_NONE,
        .last_bit = INDEX_NONE,
        .next = INDEX_NONE};
    index_set(&merge->bitmap_index, slot, hash, item);
    if (site->last_bitmap == INDEX_NONE) {
        site->first_bitmap = item;
    } else {
        merge->bitmaps[site->last_bitmap].next = item;
    }
    site->last_bitmap = item;
    site->n_bitmaps++;
    return item;
}

struct bit_wanted {
    const struct merge_activity *merge;
    uint32_t bitmap, user;
};

static bool same_bit(const void *context, uint32_t item)
{
    const struct bit_wanted *wanted = context;
    const struct day_bit *bit = &wanted->merge->bits[item];
    return bit->bitmap == wanted->bitmap && bit->user == wanted->user;
}

static bool add_bit(struct merge_activity *merge, uint32_t user, struct slice action,
    const struct activity_day *day)
{
    uint32_t bitmap_number = find_bitmap(merge, merge->users[user].site, action, day);
    if (bitmap_number == INDEX_NONE || !index_reserve(&merge->bit_index) ||
        !array_reserve(&merge->bits, &merge->bits_capacity, merge->n_bits, sizeof(*merge->bits))) {
        return false;
    }
    struct bit_wanted wanted = {merge, bitmap_number, user};
    uint64_t hash = mix((uint64_t)bitmap_number << 32 | user, 0);
    struct index_slot *slot = index_find(&merge->bit_index, hash, same_bit, &wanted);
    if (slot->item != INDEX_NONE) {
        return true;
    }
    struct day_bitmap *bitmap = &merge->bitmaps[bitmap_number];
    uint32_t item = (uint32_t)merge->n_bits++;
    merge->bits[item] = (struct day_bit){bitmap_number, user, INDEX_NONE};
    index_set(&merge->bit_index, slot, hash, item);
    if (bitmap->last_bit == INDEX_NONE) {
        bitmap->first_bit = item;
    } else {
        merge->bits[bitmap->last_bit].next = item;
    }
    bitmap->last_bit = item;
    bitmap->n_bits++;
    return true;
}

bool merge_activity_add(struct merge_activity *merge, const struct row *row, uint32_t number,
    const struct activity_day *day, const struct known_user *known)
{
    bool active = known == NULL || known->active_day != day->day;
    if (!active && row->n_actions == 0) {
        return true;
    }
    uint32_t user = find_user(merge, row, number, known);
    if (user == INDEX_NONE || (active && !add_bit(merge, user, ACTION_ACTIVE, day))) {
        return false;
    }
    if (merge->users[user].active_day < day->day) {
        merge->users[user].active_day = (int32_t)day->day;
    }
    for (unsigned i = 0; i < row->n_actions; i++) {
        if (!slice_equal(row->actions[i], ACTION_ACTIVE) &&
            !add_bit(merge, user, row->actions[i], day)) {
            return false;
        }
    }
    return true;
}

static void write_bitmap(const struct merge_activity *merge, const struct day_bitmap *bitmap,
    const char *tag, struct buffer *keys, struct buffer *args, size_t *n_args)
{
    struct key key;
    key_activity(&key, tag, merge->sites[bitmap->site].site, bitmap->action, bitmap->day.day);
    resp_word(keys, key.p, key.n);
    resp_decimal(args, bitmap->day.expire_ms);
    resp_decimal(args, bitmap->day.day);
    uint32_t n_names = 0;
    for (uint32_t b = bitmap->first_bit; b != INDEX_NONE; b = merge->bits[b].next) {
        n_names += merge->users[merge->bits[b].user].name_place > 0;
    }
    bool all = n_names > 0 && n_names == merge->sites[bitmap->site].n_names;
    uint32_t n = all ? bitmap->n_bits - n_names + 1 : bitmap->n_bits;
    resp_decimal(args, n);
    if (all) {
        resp_text(args, "*");
    }
    for (uint32_t b = bitmap->first_bit; b != INDEX_NONE; b = merge->bits[b].next) {
        const struct active_user *user = &merge->users[merge->bits[b].user];
        if (user->name_place == 0) {
            resp_decimal(args, user->index);
        } else if (!all) {
            resp_decimal(args, -(int64_t)user->name_place);
        }
    }
    *n_args += 3 + n;
}

void merge_activity_write(const struct merge_activity *merge, const char *tag, struct buffer *keys,
    size_t *n_keys, struct buffer *args, size_t *n_args)
{
    struct key key;
    resp_decimal(args, (int64_t)merge->n_sites);
    *n_args += 1;
    if (merge->n_sites > 0) {
        key_fixed(&key, tag, "acts", SLICE(""));
        resp_word(keys, key.p, key.n);
        *n_keys += 1;
    }
    for (size_t i = 0; i < merge->n_sites; i++) {
        const struct site_users *site = &merge->sites[i];
        key_user_index(&key, tag, site->site);
        resp_word(keys, key.p, key.n);
        key_user_ids(&key, tag, site->site);
        resp_word(keys, key.p, key.n);
        *n_keys += 2 + site->n_bitmaps;
        resp_decimal(args, site->n_names);
        resp_decimal(args, site->n_bitmaps);
        *n_args += 2 + site->n_names;
        for (uint32_t u = site->first_user; u != INDEX_NONE; u = merge->users[u].next) {
            if (merge->users[u].name_place > 0) {
                resp_word(args, merge->users[u].name.p, merge->users[u].name.n);
            }
        }
        for (uint32_t b = site->first_bitmap; b != INDEX_NONE; b = merge->bitmaps[b].next) {
            write_bitmap(merge, &merge->bitmaps[b], tag, keys, args, n_args);
        }
    }
}

void merge_activity_users(const struct merge_activity *merge,
    void (*visit)(void *data, uint32_t number, uint32_t index, int32_t active_day), void *data)
{
    for (size_t i = 0; i < merge->n_sites; i++) {
        for (uint32_t u = merge->sites[i].first_user; u != INDEX_NONE; u = merge->users[u].next) {
            const struct active_user *user = &merge->users[u];
            visit(data, user->number, user->index, user->active_day);
        }
    }
}
