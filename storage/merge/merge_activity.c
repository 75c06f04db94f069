#include "storage/merge/merge_activity.h"

#include <stdlib.h>

#include "storage/base/index.h"
#include "storage/merge/merge_activity_state.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

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
    ARRAY_CLEAR(merge, sites);
    ARRAY_CLEAR(merge, users);
    ARRAY_CLEAR(merge, bitmaps);
    ARRAY_CLEAR(merge, bits);
    index_clear(&merge->user_index);
    index_clear(&merge->bitmap_index);
    index_clear(&merge->bit_index);
}

static uint64_t mix(uint64_t hash, uint64_t with)
{
    hash = (hash ^ with) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

/* The number of the row's site, added if it is new.  Sites are few, so they are searched one by
 * one, the last one first.  INDEX_NONE: out of memory. */
static uint32_t find_site(struct merge_activity *merge, const struct row *row)
{
    for (size_t i = merge->n_sites; i-- > 0;) {
        const struct site_users *site = &merge->sites[i];
        if (site->site == row->site) {
            return (uint32_t)i;
        }
    }
    if (!ARRAY_RESERVE(merge, sites)) {
        return INDEX_NONE;
    }
    merge->sites[merge->n_sites] =
        (struct site_users){.site = row->site, .names = CHAIN_EMPTY, .bitmaps = CHAIN_EMPTY};
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

uint32_t merge_activity_index(struct merge_activity *merge, const struct row *row)
{
    if (merge->n_users == 0) {
        return USER_INDEX_NONE;
    }
    struct user_wanted wanted = {merge, &row->user_id};
    uint64_t hash = visitor_id_hash(&row->user_id);
    uint32_t item = index_find(&merge->user_index, hash, same_user, &wanted)->item;
    return item == INDEX_NONE ? USER_INDEX_NONE : merge->users[item].index;
}

/* The user of @row; INDEX_NONE: out of memory. */
static uint32_t find_user(
    struct merge_activity *merge, const struct row *row, const struct known_user *known)
{
    bool is_new;
    struct user_wanted wanted = {merge, &row->user_id};
    uint32_t item = INDEX_ADD(
        merge, user_index, users, visitor_id_hash(&row->user_id), same_user, &wanted, &is_new);
    uint32_t site_number = is_new ? find_site(merge, row) : INDEX_NONE;
    if (!is_new) {
        return item;
    }
    merge->users[item] = (struct active_user){.site = site_number,
        .id = row->user_id,
        .name = row->user,
        .index = known == NULL ? USER_INDEX_NONE : known->index,
        .active_day = known == NULL ? ACTIVE_DAY_NONE : known->active_day};
    if (known == NULL && site_number != INDEX_NONE) {
        CHAIN_APPEND(&merge->sites[site_number].names, merge->users, item);
    }
    return site_number == INDEX_NONE ? INDEX_NONE : item;
}

bool merge_activity_ask(
    struct merge_activity *merge, const struct row *row, const struct known_user *known)
{
    return known != NULL || find_user(merge, row, NULL) != INDEX_NONE;
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
    bool is_new;
    struct bitmap_wanted wanted = {merge, action, day->day, site_number};
    uint64_t hash = mix(page_hash(SLICE(""), action), (uint64_t)day->day << 20 ^ site_number);
    uint32_t item = INDEX_ADD(merge, bitmap_index, bitmaps, hash, same_bitmap, &wanted, &is_new);
    if (is_new) {
        merge->bitmaps[item] = (struct day_bitmap){
            .site = site_number, .action = action, .day = *day, .bits = CHAIN_EMPTY};
        CHAIN_APPEND(&merge->sites[site_number].bitmaps, merge->bitmaps, item);
    }
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
    if (bitmap_number == INDEX_NONE) {
        return false;
    }
    bool is_new;
    struct bit_wanted wanted = {merge, bitmap_number, user};
    uint64_t hash = mix((uint64_t)bitmap_number << 32 | user, 0);
    uint32_t item = INDEX_ADD(merge, bit_index, bits, hash, same_bit, &wanted, &is_new);
    if (is_new) {
        merge->bits[item] = (struct day_bit){.bitmap = bitmap_number, .user = user};
        CHAIN_APPEND(&merge->bitmaps[bitmap_number].bits, merge->bits, item);
    }
    return item != INDEX_NONE;
}

bool merge_activity_add(struct merge_activity *merge, const struct row *row,
    const struct activity_day *day, const struct known_user *known)
{
    bool active = known == NULL || known->active_day != day->day;
    if (!active && row->n_actions == 0) {
        return true;
    }
    uint32_t user = find_user(merge, row, known);
    if (user == INDEX_NONE || (active && !add_bit(merge, user, ACTION_ACTIVE, day))) {
        return false;
    }
    merge->users[user].is_active = true;
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

/* ---- questions ---- */

static size_t n_questions(const struct site_users *site)
{
    return (site->names.n + USERS_AT_ONCE - 1) / USERS_AT_ONCE;
}

/* Field "", the next index, goes before the names of each question. */
static void write_question(const struct merge_activity *merge, const struct site_users *site,
    uint32_t *user, uint32_t n, const char *tag, struct buffer *out)
{
    struct key key;
    resp_begin(out, "HMGET", key_user_index(&key, tag, site->site->name), 1 + n);
    resp_word(out, "", 0);
    for (; n > 0; n--) {
        resp_slice(out, merge->users[*user].name);
        *user = merge->users[*user].next;
    }
}

size_t merge_activity_write_questions(
    struct merge_activity *merge, const char *tag, struct buffer *out)
{
    size_t n = 0;
    for (size_t i = 0; i < merge->n_sites; i++) {
        const struct site_users *site = &merge->sites[i];
        uint32_t user = site->names.first;
        for (uint32_t left = site->names.n; left > 0; n++) {
            uint32_t names = left < USERS_AT_ONCE ? left : USERS_AT_ONCE;
            write_question(merge, site, &user, names, tag, out);
            left -= names;
        }
    }
    merge->taken_site = 0;
    merge->taken_user = INDEX_NONE;
    merge->taken_questions = 0;
    return n;
}

bool merge_activity_take(struct merge_activity *merge, const struct reply *reply)
{
    while (merge->taken_site < merge->n_sites &&
           merge->taken_questions == n_questions(&merge->sites[merge->taken_site])) {
        merge->taken_site++;
        merge->taken_questions = 0;
    }
    if (merge->taken_site >= merge->n_sites || reply->type != REPLY_ARRAY || reply->n < 2) {
        return false;
    }
    struct site_users *site = &merge->sites[merge->taken_site];
    if (merge->taken_questions++ == 0) {
        merge->taken_user = site->names.first;
    }
    site->next_index = reply_integer(&reply->items[0], 0);
    for (size_t i = 1; i < reply->n && merge->taken_user != INDEX_NONE; i++) {
        struct active_user *user = &merge->users[merge->taken_user];
        int64_t index = reply_integer(&reply->items[i], -1);
        if (index >= 0 && index < USER_INDEX_NONE) {
            user->index = (uint32_t)index;
        }
        merge->taken_user = user->next;
    }
    return true;
}

/* ---- commands ---- */
