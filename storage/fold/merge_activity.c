#include "storage/fold/merge_activity.h"

#include <stdlib.h>

#include "storage/base/index.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

#define USERS_AT_ONCE 1000 /* in a command: Redis does nothing else meanwhile */
#define RUN_BITS      32 /* bits that are set at once where users got indices one after the other */

/* A site, and the users of it who are asked for by name. */
struct site_users {
    struct slice site;
    uint64_t site_hash;
    uint32_t first_name, last_name, n_names;
    uint32_t first_bitmap, last_bitmap;
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

    /* How far the answers have come. */
    size_t taken_site, taken_questions;
    uint32_t taken_user;
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

/* Sites are few: the last one is looked at first. */
static uint32_t find_site(struct merge_activity *merge, const struct row *row)
{
    for (size_t i = merge->n_sites; i-- > 0;) {
        const struct site_users *site = &merge->sites[i];
        if (site->site_hash == row->site_hash && slice_equal(site->site, row->site)) {
            return (uint32_t)i;
        }
    }
    if (!array_reserve(
            &merge->sites, &merge->sites_capacity, merge->n_sites, sizeof(*merge->sites))) {
        return INDEX_NONE;
    }
    merge->sites[merge->n_sites] = (struct site_users){.site = row->site,
        .site_hash = row->site_hash,
        .first_name = INDEX_NONE,
        .last_name = INDEX_NONE,
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

static void link_name(struct merge_activity *merge, struct site_users *site, uint32_t item)
{
    if (site->last_name == INDEX_NONE) {
        site->first_name = item;
    } else {
        merge->users[site->last_name].next = item;
    }
    site->last_name = item;
    site->n_names++;
}

/* The user of @row; INDEX_NONE: out of memory. */
static uint32_t find_user(
    struct merge_activity *merge, const struct row *row, const struct known_user *known)
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
    merge->users[item] = (struct active_user){.site = site_number,
        .id = row->visitor,
        .name = row->user,
        .index = known == NULL ? USER_INDEX_NONE : known->index,
        .active_day = known == NULL ? ACTIVE_DAY_NONE : known->active_day,
        .next = INDEX_NONE};
    index_set(&merge->user_index, slot, hash, item);
    if (known == NULL) {
        link_name(merge, &merge->sites[site_number], item);
    }
    return item;
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
    return (site->n_names + USERS_AT_ONCE - 1) / USERS_AT_ONCE;
}

/* Field "", the next index, goes before the names of each question. */
static void write_question(const struct merge_activity *merge, const struct site_users *site,
    uint32_t *user, uint32_t n, const char *tag, struct buffer *out)
{
    struct key key;
    key_user_index(&key, tag, site->site);
    resp_head(out, 3 + n);
    resp_text(out, "HMGET");
    resp_word(out, key.p, key.n);
    resp_word(out, "", 0);
    for (; n > 0; n--) {
        resp_word(out, merge->users[*user].name.p, merge->users[*user].name.n);
        *user = merge->users[*user].next;
    }
}

size_t merge_activity_write_questions(
    struct merge_activity *merge, const char *tag, struct buffer *out)
{
    size_t n = 0;
    for (size_t i = 0; i < merge->n_sites; i++) {
        const struct site_users *site = &merge->sites[i];
        uint32_t user = site->first_name;
        for (uint32_t left = site->n_names; left > 0; n++) {
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
        merge->taken_user = site->first_name;
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

/* Give those who have none the next indices.  Returns the first one that gets one here. */
static uint32_t give_indices(struct merge_activity *merge, struct site_users *site)
{
    uint32_t first = INDEX_NONE;
    site->first_given = site->next_index;
    site->n_given = 0;
    for (uint32_t u = site->first_name; u != INDEX_NONE; u = merge->users[u].next) {
        struct active_user *user = &merge->users[u];
        if (user->is_active && user->index == USER_INDEX_NONE) {
            user->index = (uint32_t)(site->first_given + site->n_given++);
            first = first == INDEX_NONE ? u : first;
        }
    }
    return first;
}

/* The next user behind @u who got an index here. */
static uint32_t next_given(
    const struct merge_activity *merge, const struct site_users *site, uint32_t u)
{
    do {
        u = merge->users[u].next;
    } while (u != INDEX_NONE &&
             (!merge->users[u].is_active || merge->users[u].index < site->first_given));
    return u;
}

/* HSET of the indices that were given, and of the next one. */
static void write_indices(const struct merge_activity *merge, const struct site_users *site,
    uint32_t first, const char *tag, struct buffer *out)
{
    struct key key;
    key_user_index(&key, tag, site->site);
    resp_head(out, 4 + 2 * (size_t)site->n_given);
    resp_text(out, "HSET");
    resp_word(out, key.p, key.n);
    resp_word(out, "", 0);
    resp_decimal(out, site->first_given + site->n_given);
    for (uint32_t u = first; u != INDEX_NONE; u = next_given(merge, site, u)) {
        resp_word(out, merge->users[u].name.p, merge->users[u].name.n);
        resp_decimal(out, merge->users[u].index);
    }
}

/* A name's place in its block's list is that of its index in the block. */
static size_t write_blocks(const struct merge_activity *merge, const struct site_users *site,
    uint32_t first, const char *tag, struct buffer *out)
{
    size_t n = 0;
    int64_t end = site->first_given + site->n_given;
    uint32_t u = first;
    for (int64_t at = site->first_given; at < end; n++) {
        int64_t block_end = (at / KEY_IDS_BLOCK + 1) * KEY_IDS_BLOCK;
        int64_t stop = block_end < end ? block_end : end;
        char digits[24];
        struct key key;
        key_user_ids(&key, tag, site->site);
        size_t digits_n = decimal_print(at / KEY_IDS_BLOCK, digits);
        memcpy(key.p + key.n, digits, digits_n); /* a site leaves far more room than that */
        resp_head(out, 2 + (size_t)(stop - at));
        resp_text(out, "RPUSH");
        resp_word(out, key.p, key.n + digits_n);
        for (; at < stop; at++, u = next_given(merge, site, u)) {
            resp_word(out, merge->users[u].name.p, merge->users[u].name.n);
        }
    }
    return n;
}

static void write_bit(struct buffer *out, unsigned width, int64_t at)
{
    char type[4] = {'u', (char)('0' + width % 10), '\0', '\0'};
    if (width > 9) {
        type[1] = (char)('0' + width / 10);
        type[2] = (char)('0' + width % 10);
    }
    resp_text(out, "SET");
    resp_text(out, type);
    resp_decimal(out, at);
    resp_decimal(out, (INT64_C(1) << width) - 1);
}

/* So many bits from that of @b on belong to users whose indices follow each other. */
static unsigned run_of(const struct merge_activity *merge, uint32_t b)
{
    unsigned n = 1;
    int64_t index = merge->users[merge->bits[b].user].index;
    for (b = merge->bits[b].next; n < RUN_BITS && b != INDEX_NONE; b = merge->bits[b].next, n++) {
        if (merge->users[merge->bits[b].user].index != index + n) {
            break;
        }
    }
    return n;
}

static uint32_t skip_bits(const struct merge_activity *merge, uint32_t b, unsigned n)
{
    for (; n > 0; n--) {
        b = merge->bits[b].next;
    }
    return b;
}

/* Set the bits of @bitmap, some at a time.  Returns how many commands that takes. */
static size_t write_bits(const struct merge_activity *merge, const struct day_bitmap *bitmap,
    const struct key *key, struct buffer *out)
{
    size_t n = 0;
    uint32_t b = bitmap->first_bit;
    while (b != INDEX_NONE) {
        size_t runs = 0;
        for (uint32_t c = b; c != INDEX_NONE && runs < USERS_AT_ONCE; runs++) {
            c = skip_bits(merge, c, run_of(merge, c));
        }
        resp_head(out, 2 + 4 * runs);
        resp_text(out, "BITFIELD");
        resp_word(out, key->p, key->n);
        for (; runs > 0; runs--) {
            unsigned width = run_of(merge, b);
            write_bit(out, width, merge->users[merge->bits[b].user].index);
            b = skip_bits(merge, b, width);
        }
        n++;
    }
    return n;
}

/* The bitmap's member of `acts`: what follows "t:{p}:act:" in its key. */
static void write_member(
    const struct day_bitmap *bitmap, const struct key *bits, const char *tag, struct buffer *out)
{
    struct key prefix;
    key_activity_prefix(&prefix, tag);
    struct key acts;
    key_fixed(&acts, tag, "acts", SLICE(""));
    resp_head(out, 4);
    resp_text(out, "ZADD");
    resp_word(out, acts.p, acts.n);
    resp_decimal(out, bitmap->day.day);
    resp_word(out, bits->p + prefix.n, bits->n - prefix.n);
}

static size_t write_site(struct merge_activity *merge, struct site_users *site, const char *tag,
    int64_t now_ms, struct buffer *out)
{
    size_t n = 0;
    uint32_t first = give_indices(merge, site);
    if (first != INDEX_NONE) {
        write_indices(merge, site, first, tag, out);
        n += 1 + write_blocks(merge, site, first, tag, out);
    }
    for (uint32_t b = site->first_bitmap; b != INDEX_NONE; b = merge->bitmaps[b].next) {
        const struct day_bitmap *bitmap = &merge->bitmaps[b];
        struct key key;
        if (bitmap->day.expire_ms != 0 && now_ms >= bitmap->day.expire_ms) {
            continue;
        }
        key_activity(&key, tag, site->site, bitmap->action, bitmap->day.day);
        write_member(bitmap, &key, tag, out);
        n += 1 + write_bits(merge, bitmap, &key, out);
    }
    return n;
}

size_t merge_activity_write(
    struct merge_activity *merge, const char *tag, int64_t now_ms, struct buffer *out)
{
    size_t n = 0;
    for (size_t i = 0; i < merge->n_sites; i++) {
        n += write_site(merge, &merge->sites[i], tag, now_ms, out);
    }
    return n;
}

void merge_activity_users(const struct merge_activity *merge,
    void (*visit)(void *data, const struct visitor_id *id, uint32_t index, int32_t active_day),
    void *data)
{
    for (size_t i = 0; i < merge->n_users; i++) {
        const struct active_user *user = &merge->users[i];
        if (user->is_active) {
            visit(data, &user->id, user->index, user->active_day);
        }
    }
}
