/* merge_activity_write.c - the commands that give users their indices, and set the bits of days. */
#include "storage/merge/merge_activity.h"

#include "storage/merge/merge_activity_state.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

#define RUN_BITS 32 /* so many bits of users with consecutive indices are set at once */

/* Give the next indices to the users who have none.  Returns the first user who gets one here. */
static uint32_t give_indices(struct merge_activity *merge, struct site_users *site)
{
    uint32_t first = INDEX_NONE;
    site->first_given = site->next_index;
    site->n_given = 0;
    for (uint32_t u = site->names.first; u != INDEX_NONE; u = merge->users[u].next) {
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

/* Append HSETs of the next index, and of the indices that were given, USERS_AT_ONCE in each.
 * Returns how many commands these are. */
static size_t write_indices(const struct merge_activity *merge, const struct site_users *site,
    uint32_t first, const char *tag, struct buffer *out)
{
    size_t n = 0;
    struct key named;
    struct slice key = key_user_index(&named, tag, site->site->name);
    uint32_t u = first;
    for (size_t left = (size_t)site->n_given; left > 0; n++) {
        size_t now = left < USERS_AT_ONCE ? left : USERS_AT_ONCE;
        resp_begin(out, "HSET", key, (n == 0 ? 2 : 0) + 2 * now);
        if (n == 0) {
            resp_word(out, "", 0);
            resp_decimal(out, site->first_given + site->n_given);
        }
        for (left -= now; now > 0; now--, u = next_given(merge, site, u)) {
            resp_slice(out, merge->users[u].name);
            resp_decimal(out, merge->users[u].index);
        }
    }
    return n;
}

/* Append RPUSHes of the names with given indices to the lists of their blocks: a name stands in its
 * list where its index stands in the block.  Returns how many commands these are. */
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
        key_user_ids(&key, tag, site->site->name);
        size_t digits_n = decimal_print(at / KEY_IDS_BLOCK, digits);
        memcpy(key.p + key.n, digits, digits_n); /* a site leaves far more room than that */
        resp_head(out, 2 + (size_t)(stop - at));
        resp_text(out, "RPUSH");
        resp_word(out, key.p, key.n + digits_n);
        for (; at < stop; at++, u = next_given(merge, site, u)) {
            resp_slice(out, merge->users[u].name);
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

/* How many bits, from number @b on, belong to users with consecutive indices: RUN_BITS at most. */
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

/* Append commands that set the bits of @bitmap, some in each.  Returns how many commands these are.
 */
static size_t write_bits(const struct merge_activity *merge, const struct day_bitmap *bitmap,
    const struct key *key, struct buffer *out)
{
    size_t n = 0;
    uint32_t b = bitmap->bits.first;
    while (b != INDEX_NONE) {
        size_t runs = 0;
        for (uint32_t c = b; c != INDEX_NONE && runs < USERS_AT_ONCE; runs++) {
            c = skip_bits(merge, c, run_of(merge, c));
        }
        resp_begin(out, "BITFIELD", (struct slice){key->p, key->n}, 4 * runs);
        for (; runs > 0; runs--) {
            unsigned width = run_of(merge, b);
            write_bit(out, width, merge->users[merge->bits[b].user].index);
            b = skip_bits(merge, b, width);
        }
        n++;
    }
    return n;
}

/* Add the bitmap to the set `acts`, whose members are ends of keys, behind the prefix. */
static void write_member(
    const struct day_bitmap *bitmap, const struct key *bits, const char *tag, struct buffer *out)
{
    struct key prefix;
    key_activity_prefix(&prefix, tag);
    key_command(out, "ZADD", tag, "acts", 2);
    resp_decimal(out, bitmap->day.day);
    resp_word(out, bits->p + prefix.n, bits->n - prefix.n);
}

static size_t write_site(struct merge_activity *merge, struct site_users *site, const char *tag,
    int64_t now_ms, struct buffer *out)
{
    size_t n = 0;
    uint32_t first = give_indices(merge, site);
    if (first != INDEX_NONE) {
        n += write_indices(merge, site, first, tag, out);
        n += write_blocks(merge, site, first, tag, out);
    }
    for (uint32_t b = site->bitmaps.first; b != INDEX_NONE; b = merge->bitmaps[b].next) {
        const struct day_bitmap *bitmap = &merge->bitmaps[b];
        struct key key;
        if (bitmap->day.expire_ms != 0 && now_ms >= bitmap->day.expire_ms) {
            continue;
        }
        key_activity(&key, tag, site->site->name, bitmap->action, bitmap->day.day);
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
