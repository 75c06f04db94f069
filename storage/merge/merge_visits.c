#include "storage/merge/merge_visits.h"

#include <stdlib.h>

#include "storage/base/index.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

#define VISITORS_AT_ONCE 1000 /* in a command: Redis does nothing else meanwhile */
#define SLOT_TIMEOUTS    2    /* a slot is so long: how long a visitor is remembered */
#define SLOTS_BACK       2    /* the slot of the arrival, and the one before */
#define TIME_BYTES       5
#define VALUE_BYTES      (2 * TIME_BYTES)
#define INDEX_BYTES      4
#define DAY_BYTES        3
#define GENERATION_BYTES 5
#define USER_BYTES       (VALUE_BYTES + INDEX_BYTES + DAY_BYTES + GENERATION_BYTES)
#define DAY_ZERO         (1 << 22)          /* 1970-01-01; 0: no day */
#define BOUNCE_BIT       (INT64_C(1) << 39) /* of the last event's time: it is the only one */

/* Some visitors of a site whose first event here arrived in the same slot.
 *
 * The first events may be counted already: that is not known before the answers.  By then another
 * process may have counted events that arrived in a later slot.  So the slots up to that of the
 * last event here are asked, too. */
struct group {
    struct slice site;
    uint64_t site_hash;
    int64_t slot, last_slot;
    uint32_t first_visitor, last_visitor, n_visitors;
    bool is_new; /* Redis has no hash for the slot */
};

struct visitor {
    struct visitor_id id;
    int64_t last_s, arrival_s; /* of the last event; if is_known */
    uint64_t generation;       /* of the index; 0: there is none */
    uint32_t index;
    int32_t active_day;
    uint32_t group, next;
    bool is_expected; /* to have an index */
    bool is_known;
    bool is_bounce; /* the visit has one event so far */
    bool is_added;  /* to be written */
};

struct merge_visits {
    int64_t timeout_s;
    uint64_t generation; /* of users, now */
    struct group *groups;
    struct visitor *visitors;
    size_t n_groups, n_visitors;
    size_t groups_capacity, visitors_capacity;
    size_t answering, answered; /* the group whose answers come; how many came of those before */
    struct index visitor_index;
};

struct merge_visits *merge_visits_new(int64_t timeout_s)
{
    struct merge_visits *merge = calloc(1, sizeof(*merge));
    if (merge != NULL) {
        merge->timeout_s = timeout_s;
    }
    return merge;
}

void merge_visits_free(struct merge_visits *merge)
{
    if (merge != NULL) {
        free(merge->groups);
        free(merge->visitors);
        index_release(&merge->visitor_index);
        free(merge);
    }
}

void merge_visits_clear(struct merge_visits *merge)
{
    merge->n_groups = merge->n_visitors = 0;
    merge->generation = 0;
    index_clear(&merge->visitor_index);
}

int64_t merge_visits_slot(const struct merge_visits *merge, int64_t arrival_s)
{
    return arrival_s / (SLOT_TIMEOUTS * merge->timeout_s);
}

/* ---- who is asked for ---- */

/* A group with room: there are few, and the last one is looked at first. */
static uint32_t find_group(struct merge_visits *merge, const struct row *row, int64_t slot)
{
    for (size_t i = merge->n_groups; i-- > 0;) {
        const struct group *group = &merge->groups[i];
        if (group->slot == slot && group->n_visitors < VISITORS_AT_ONCE &&
            group->site_hash == row->site_hash && slice_equal(group->site, row->site)) {
            return (uint32_t)i;
        }
    }
    if (!array_reserve(
            &merge->groups, &merge->groups_capacity, merge->n_groups, sizeof(*merge->groups))) {
        return INDEX_NONE;
    }
    merge->groups[merge->n_groups] = (struct group){.site = row->site,
        .site_hash = row->site_hash,
        .slot = slot,
        .last_slot = slot,
        .first_visitor = INDEX_NONE,
        .last_visitor = INDEX_NONE};
    return (uint32_t)merge->n_groups++;
}

struct visitor_wanted {
    const struct merge_visits *merge;
    const struct visitor_id *id;
};

static bool same_visitor(const void *context, uint32_t item)
{
    const struct visitor_wanted *wanted = context; /* the id has the site in it */
    return memcmp(&wanted->merge->visitors[item].id, wanted->id, sizeof(*wanted->id)) == 0;
}

static struct index_slot *find_visitor(
    struct merge_visits *merge, const struct visitor_id *id, uint64_t *ret_hash)
{
    struct visitor_wanted wanted = {merge, id};
    memcpy(ret_hash, id->bytes, sizeof(*ret_hash));
    return index_find(&merge->visitor_index, *ret_hash, same_visitor, &wanted);
}

static void link_visitor(struct merge_visits *merge, struct group *group, uint32_t item)
{
    if (group->last_visitor == INDEX_NONE) {
        group->first_visitor = item;
    } else {
        merge->visitors[group->last_visitor].next = item;
    }
    group->last_visitor = item;
    group->n_visitors++;
}

bool merge_visits_ask(
    struct merge_visits *merge, const struct row *row, int64_t arrival_s, bool expected)
{
    uint64_t hash;
    if (!index_reserve(&merge->visitor_index) ||
        !array_reserve(&merge->visitors, &merge->visitors_capacity, merge->n_visitors,
            sizeof(*merge->visitors))) {
        return false;
    }
    struct index_slot *slot = find_visitor(merge, &row->visitor, &hash);
    if (slot->item != INDEX_NONE) {
        struct group *of = &merge->groups[merge->visitors[slot->item].group];
        int64_t last_slot = merge_visits_slot(merge, arrival_s);
        of->last_slot = last_slot > of->last_slot ? last_slot : of->last_slot;
        merge->visitors[slot->item].is_expected |= expected;
        return true;
    }
    uint32_t group = find_group(merge, row, merge_visits_slot(merge, arrival_s));
    if (group == INDEX_NONE) {
        return false;
    }
    uint32_t item = (uint32_t)merge->n_visitors++;
    merge->visitors[item] = (struct visitor){
        .id = row->visitor, .group = group, .next = INDEX_NONE, .is_expected = expected};
    index_set(&merge->visitor_index, slot, hash, item);
    link_visitor(merge, &merge->groups[group], item);
    return true;
}

/* ---- questions ---- */

static void write_hash_key(struct buffer *out, const char *tag, struct slice site, int64_t slot)
{
    char digits[24];
    struct key key;
    key_visit_prefix(&key, tag, site);
    size_t n = decimal_print(slot, digits);
    memcpy(key.p + key.n, digits, n); /* a site leaves far more room than that */
    resp_word(out, key.p, key.n + n);
}

/* How many slots are asked for: from the last one back to the one before the first. */
static size_t slots_asked(const struct group *group)
{
    return (size_t)(group->last_slot - group->slot) + SLOTS_BACK;
}

size_t merge_visits_write_questions(struct merge_visits *merge, const char *tag, struct buffer *out)
{
    size_t n = 0;
    merge->answering = merge->answered = 0;
    for (size_t i = 0; i < merge->n_groups; i++) {
        const struct group *group = &merge->groups[i];
        n += slots_asked(group) + 1;
        for (size_t back = 0; back < slots_asked(group); back++) {
            resp_head(out, 2 + group->n_visitors);
            resp_text(out, "HMGET");
            write_hash_key(out, tag, group->site, group->last_slot - (int64_t)back);
            for (uint32_t v = group->first_visitor; v != INDEX_NONE; v = merge->visitors[v].next) {
                resp_word(out, merge->visitors[v].id.bytes, sizeof(merge->visitors[v].id.bytes));
            }
        }
        resp_head(out, 2);
        resp_text(out, "EXISTS");
        write_hash_key(out, tag, group->site, group->slot);
    }
    return n;
}

/* The number in @n bytes from *bytes on, which moves behind it. */
static int64_t read_number(const char **bytes, size_t n)
{
    int64_t value = 0;
    for (; n > 0; n--) {
        value = value << 8 | (uint8_t) * (*bytes)++;
    }
    return value;
}

static void read_value(struct visitor *visitor, struct slice value)
{
    const char *bytes = value.p;
    int64_t last = read_number(&bytes, TIME_BYTES);
    visitor->is_known = true;
    visitor->is_bounce = (last & BOUNCE_BIT) != 0;
    visitor->last_s = last & ~BOUNCE_BIT;
    visitor->arrival_s = read_number(&bytes, TIME_BYTES);
    if (value.n == USER_BYTES) {
        visitor->index = (uint32_t)read_number(&bytes, INDEX_BYTES);
        int32_t day = (int32_t)read_number(&bytes, DAY_BYTES);
        visitor->active_day = day == 0 ? ACTIVE_DAY_NONE : day - DAY_ZERO;
        visitor->generation = (uint64_t)read_number(&bytes, GENERATION_BYTES);
    }
}

/* The newest slot is answered first: what an older one says of the same visitor is over. */
static bool take_visitors(
    struct merge_visits *merge, const struct group *group, const struct reply *reply)
{
    const struct reply *value = reply->items;
    if (reply->type != REPLY_ARRAY || reply->n != group->n_visitors) {
        return false;
    }
    for (uint32_t v = group->first_visitor; v != INDEX_NONE; value++) {
        struct visitor *visitor = &merge->visitors[v];
        v = visitor->next;
        if (value->type == REPLY_TEXT && !visitor->is_known &&
            (value->text.n == VALUE_BYTES || value->text.n == USER_BYTES)) {
            read_value(visitor, value->text);
        }
    }
    return true;
}

bool merge_visits_take(struct merge_visits *merge, size_t i, const struct reply *reply)
{
    struct group *group = &merge->groups[merge->answering];
    if (i - merge->answered < slots_asked(group)) {
        return take_visitors(merge, group, reply);
    }
    merge->answering++;
    merge->answered = i + 1;
    group->is_new = reply->type == REPLY_INTEGER && reply->integer == 0;
    return reply->type == REPLY_INTEGER;
}

/* ---- indices of users ---- */

void merge_visits_generation(struct merge_visits *merge, uint64_t generation)
{
    merge->generation = generation & ((UINT64_C(1) << (8 * GENERATION_BYTES)) - 1);
    merge->generation += merge->generation == 0;
}

static bool has_index(const struct merge_visits *merge, const struct visitor *visitor)
{
    return visitor->generation != 0 && visitor->generation == merge->generation;
}

size_t merge_visits_missing(const struct merge_visits *merge,
    void (*visit)(void *data, const struct visitor_id *id), void *data)
{
    size_t n = 0;
    for (size_t i = 0; i < merge->n_visitors; i++) {
        const struct visitor *visitor = &merge->visitors[i];
        if (visitor->is_expected && !has_index(merge, visitor)) {
            visit(data, &visitor->id);
            n++;
        }
    }
    return n;
}

/* NULL: nobody asked for this visitor. */
static struct visitor *visitor_of(struct merge_visits *merge, const struct visitor_id *id)
{
    uint64_t hash;
    uint32_t item = merge->n_visitors == 0 ? INDEX_NONE : find_visitor(merge, id, &hash)->item;
    return item == INDEX_NONE ? NULL : &merge->visitors[item];
}

bool merge_visits_user(
    struct merge_visits *merge, const struct visitor_id *id, struct known_user *ret)
{
    const struct visitor *visitor = visitor_of(merge, id);
    if (visitor == NULL || !visitor->is_expected) {
        return false;
    }
    *ret =
        (struct known_user){.id = *id, .index = visitor->index, .active_day = visitor->active_day};
    return true;
}

void merge_visits_set_user(
    struct merge_visits *merge, const struct visitor_id *id, uint32_t index, int32_t active_day)
{
    struct visitor *visitor = visitor_of(merge, id);
    if (visitor != NULL) {
        visitor->index = index;
        visitor->active_day = active_day;
        visitor->generation = merge->generation;
    }
}

static bool is_kept(const struct merge_visits *merge, const struct visitor *visitor)
{
    return visitor->is_added && has_index(merge, visitor);
}

bool merge_visits_keeps(struct merge_visits *merge, const struct visitor_id *id)
{
    const struct visitor *visitor = visitor_of(merge, id);
    return visitor != NULL && is_kept(merge, visitor);
}

void merge_visits_users(const struct merge_visits *merge,
    void (*visit)(void *data, const struct visitor_id *id, int64_t slot), void *data)
{
    for (size_t i = 0; i < merge->n_visitors; i++) {
        const struct visitor *visitor = &merge->visitors[i];
        if (is_kept(merge, visitor)) {
            visit(data, &visitor->id, merge_visits_slot(merge, visitor->arrival_s));
        }
    }
}

/* ---- deciding ---- */

struct visit_step merge_visits_add(
    struct merge_visits *merge, const struct row *row, int64_t arrival_s)
{
    struct visit_step step = {0};
    uint64_t hash;
    struct visitor *visitor = &merge->visitors[find_visitor(merge, &row->visitor, &hash)->item];
    bool remembered =
        visitor->is_known && arrival_s - visitor->arrival_s <= SLOT_TIMEOUTS * merge->timeout_s;
    step.begins = !remembered || row->at_s > visitor->last_s + merge->timeout_s;
    if (step.begins && !row->is_view) {
        return (struct visit_step){0};
    }
    if (step.begins) {
        visitor->is_bounce = true;
    } else if (row->at_s >= visitor->last_s - merge->timeout_s) {
        step.engages = visitor->is_bounce;
        step.seconds = row->at_s > visitor->last_s ? (uint32_t)(row->at_s - visitor->last_s) : 0;
        visitor->is_bounce = false;
    }
    if (!remembered || row->at_s > visitor->last_s) {
        visitor->last_s = row->at_s;
    }
    visitor->arrival_s = arrival_s;
    visitor->is_known = visitor->is_added = true;
    return step;
}

/* ---- what is kept ---- */

/* Returns what stands behind the number. */
static char *write_number(char *to, uint64_t value, size_t n)
{
    for (size_t i = n; i-- > 0; value >>= 8) {
        to[i] = (char)(value & 0xff);
    }
    return to + n;
}

/* A day that does not fit is none: the bit is set once more. */
static uint64_t day_number(int32_t day)
{
    return day <= -DAY_ZERO || day >= DAY_ZERO ? 0 : (uint64_t)(day + DAY_ZERO);
}

static void write_visitor(
    const struct merge_visits *merge, const struct visitor *visitor, struct buffer *out)
{
    char value[USER_BYTES];
    int64_t last = visitor->last_s | (visitor->is_bounce ? BOUNCE_BIT : 0);
    char *end = write_number(value, (uint64_t)last, TIME_BYTES);
    end = write_number(end, (uint64_t)visitor->arrival_s, TIME_BYTES);
    if (has_index(merge, visitor)) {
        end = write_number(end, visitor->index, INDEX_BYTES);
        end = write_number(end, day_number(visitor->active_day), DAY_BYTES);
        end = write_number(end, visitor->generation, GENERATION_BYTES);
    }
    resp_word(out, visitor->id.bytes, sizeof(visitor->id.bytes));
    resp_word(out, value, (size_t)(end - value));
}

/* A slot is asked for until the next one is over. */
static void write_expiry(const struct merge_visits *merge, const char *tag, struct slice site,
    int64_t slot, struct buffer *out)
{
    resp_head(out, 4);
    resp_text(out, "EXPIRE");
    write_hash_key(out, tag, site, slot);
    resp_decimal(out, SLOTS_BACK * SLOT_TIMEOUTS * merge->timeout_s + 60);
    resp_text(out, "NX");
}

/* Keep @group's visitors whose last event arrived in @slot; *next_slot becomes the first later slot
 * that others of them have. */
static size_t write_slot(const struct merge_visits *merge, const struct group *group,
    const char *tag, int64_t slot, int64_t *next_slot, struct buffer *out)
{
    size_t n = 0;
    for (uint32_t v = group->first_visitor; v != INDEX_NONE; v = merge->visitors[v].next) {
        const struct visitor *visitor = &merge->visitors[v];
        int64_t is = merge_visits_slot(merge, visitor->arrival_s);
        n += visitor->is_added && is == slot;
        if (visitor->is_added && is > slot && is < *next_slot) {
            *next_slot = is;
        }
    }
    if (n == 0) {
        return 0;
    }
    resp_head(out, 2 + 2 * n);
    resp_text(out, "HSET");
    write_hash_key(out, tag, group->site, slot);
    for (uint32_t v = group->first_visitor; v != INDEX_NONE; v = merge->visitors[v].next) {
        const struct visitor *visitor = &merge->visitors[v];
        if (visitor->is_added && merge_visits_slot(merge, visitor->arrival_s) == slot) {
            write_visitor(merge, visitor, out);
        }
    }
    write_expiry(merge, tag, group->site, slot, out);
    return 2;
}

size_t merge_visits_write(const struct merge_visits *merge, const char *tag, struct buffer *out)
{
    size_t n = 0;
    for (size_t i = 0; i < merge->n_groups; i++) {
        const struct group *group = &merge->groups[i];
        int64_t slot = INT64_MIN;
        for (;;) {
            int64_t next_slot = INT64_MAX;
            n += write_slot(merge, group, tag, slot, &next_slot, out);
            if (next_slot == INT64_MAX) {
                break;
            }
            slot = next_slot;
        }
        if (group->is_new) { /* nobody asks for the one before the last any more */
            resp_head(out, 2);
            resp_text(out, "UNLINK");
            write_hash_key(out, tag, group->site, group->slot - SLOTS_BACK);
            n++;
        }
    }
    return n;
}
