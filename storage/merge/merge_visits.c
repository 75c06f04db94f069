#include "storage/merge/merge_visits.h"

#include <assert.h>
#include <stdlib.h>

#include "storage/merge/merge_visits_state.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

#define VISITORS_AT_ONCE 1000 /* visitors of a command: Redis does nothing else meanwhile */

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
    ARRAY_CLEAR(merge, groups);
    ARRAY_CLEAR(merge, visitors);
    merge->generation = 0;
    merge->now_slot = 0;
    index_clear(&merge->visitor_index);
}

int64_t merge_visits_slot(const struct merge_visits *merge, int64_t arrival_s)
{
    return arrival_s / (SLOT_TIMEOUTS * merge->timeout_s);
}

void merge_visits_now(struct merge_visits *merge, int64_t now_s)
{
    merge->now_slot = merge_visits_slot(merge, now_s);
}

/* ---- who is asked for ---- */

/* A group of the slot with room for a visitor, added if there is none.  Groups are few, so they are
 * searched one by one, the last one first.  INDEX_NONE: out of memory. */
static uint32_t find_group(struct merge_visits *merge, const struct row *row, int64_t slot)
{
    for (size_t i = merge->n_groups; i-- > 0;) {
        const struct group *group = &merge->groups[i];
        if (group->slot == slot && group->visitors.n < VISITORS_AT_ONCE &&
            group->site == row->site) {
            return (uint32_t)i;
        }
    }
    if (!ARRAY_RESERVE(merge, groups)) {
        return INDEX_NONE;
    }
    merge->groups[merge->n_groups] =
        (struct group){.site = row->site, .slot = slot, .last_slot = slot, .visitors = CHAIN_EMPTY};
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

/* Extend what is asked for to the last slot that may have a visitor of whom an event arrived in
 * @slot.
 */
static void expect_until(const struct merge_visits *merge, struct group *group, int64_t slot)
{
    int64_t last_slot = merge->now_slot > slot ? slot + 1 : slot;
    group->last_slot = last_slot > group->last_slot ? last_slot : group->last_slot;
}

bool merge_visits_ask(
    struct merge_visits *merge, const struct row *row, int64_t arrival_s, enum known_visit expected)
{
    bool is_new;
    struct visitor_wanted wanted = {merge, &row->visitor};
    int64_t slot = merge_visits_slot(merge, arrival_s);
    uint32_t item = INDEX_ADD(merge, visitor_index, visitors, visitor_id_hash(&row->visitor),
        same_visitor, &wanted, &is_new);
    if (is_new) {
        uint32_t group = find_group(merge, row, slot);
        merge->visitors[item] = (struct visitor){.id = row->visitor, .group = group};
        if (group == INDEX_NONE) {
            return false;
        }
        CHAIN_APPEND(&merge->groups[group].visitors, merge->visitors, item);
    }
    if (item == INDEX_NONE) {
        return false;
    }
    struct visitor *visitor = &merge->visitors[item];
    visitor->is_expected |= expected != VISIT_ANYWHERE;
    visitor->is_in_slot |= expected == VISIT_IN_SLOT;
    expect_until(merge, &merge->groups[visitor->group], slot);
    return true;
}

/* ---- questions ---- */

/* How many slots are asked for: from the group's last one back to its own, or to the one before. */
static size_t slots_asked(const struct group *group)
{
    return (size_t)(group->last_slot - group->slot) + 1 + (group->n_before > 0);
}

/* Is the visitor asked for in the slot that is @back slots before the group's last one? */
static bool is_asked(const struct group *group, const struct visitor *visitor, size_t back)
{
    return group->last_slot - (int64_t)back >= group->slot || !visitor->is_in_slot;
}

/* Count the visitors who are asked for in the slot before, too. */
static void count_before(const struct merge_visits *merge, struct group *group)
{
    group->n_before = 0;
    for (uint32_t v = group->visitors.first; v != INDEX_NONE; v = merge->visitors[v].next) {
        group->n_before += !merge->visitors[v].is_in_slot;
    }
}

static void write_question(const struct merge_visits *merge, const struct group *group, size_t back,
    const char *tag, struct buffer *out)
{
    int64_t slot = group->last_slot - (int64_t)back;
    visit_command(out, "HMGET", tag, group->site->name, slot,
        slot < group->slot ? group->n_before : group->visitors.n);
    for (uint32_t v = group->visitors.first; v != INDEX_NONE; v = merge->visitors[v].next) {
        const struct visitor *visitor = &merge->visitors[v];
        if (is_asked(group, visitor, back)) {
            resp_word(out, visitor->id.bytes, sizeof(visitor->id.bytes));
        }
    }
}

size_t merge_visits_write_questions(struct merge_visits *merge, const char *tag, struct buffer *out)
{
    size_t n = 0;
    merge->answering = merge->answered = 0;
    for (size_t i = 0; i < merge->n_groups; i++) {
        struct group *group = &merge->groups[i];
        count_before(merge, group);
        n += slots_asked(group) + 1;
        for (size_t back = 0; back < slots_asked(group); back++) {
            write_question(merge, group, back, tag, out);
        }
        visit_command(out, "EXISTS", tag, group->site->name, group->slot, 0);
    }
    return n;
}

/* Read the number in @n bytes from *bytes on, and move *bytes behind it. */
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

/* Take what a slot has of the group's visitors.  The newest slot is answered first: what an older
 * one says of the same visitor is out of date. */
static bool take_visitors(
    struct merge_visits *merge, const struct group *group, size_t back, const struct reply *reply)
{
    bool before = group->last_slot - (int64_t)back < group->slot;
    if (reply->type != REPLY_ARRAY || reply->n != (before ? group->n_before : group->visitors.n)) {
        return false;
    }
    const struct reply *value = reply->items;
    for (uint32_t v = group->visitors.first; v != INDEX_NONE; v = merge->visitors[v].next) {
        struct visitor *visitor = &merge->visitors[v];
        if (!is_asked(group, visitor, back)) {
            continue;
        }
        if (value->type == REPLY_TEXT && !visitor->is_known &&
            (value->text.n == VALUE_BYTES || value->text.n == USER_BYTES)) {
            read_value(visitor, value->text);
        }
        value++;
    }
    return true;
}

bool merge_visits_take(struct merge_visits *merge, size_t i, const struct reply *reply)
{
    struct group *group = &merge->groups[merge->answering];
    if (i - merge->answered < slots_asked(group)) {
        return take_visitors(merge, group, i - merge->answered, reply);
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

size_t merge_visits_missing(const struct merge_visits *merge,
    void (*visit)(void *data, const struct visitor_id *id), void *data)
{
    size_t n = 0;
    for (size_t i = 0; i < merge->n_visitors; i++) {
        const struct visitor *visitor = &merge->visitors[i];
        if (visitor->is_expected && !visitor_has_index(merge, visitor)) {
            visit(data, &visitor->id);
            n++;
        }
    }
    return n;
}

/* NULL: nobody asked for this visitor. */
static struct visitor *visitor_of(struct merge_visits *merge, const struct visitor_id *id)
{
    struct visitor_wanted wanted = {merge, id};
    uint32_t item =
        merge->n_visitors == 0
            ? INDEX_NONE
            : index_find(&merge->visitor_index, visitor_id_hash(id), same_visitor, &wanted)->item;
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
    return visitor->is_added && visitor_has_index(merge, visitor);
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
    struct visitor *visitor = visitor_of(merge, &row->visitor);
    assert(visitor != NULL); /* the visitor was asked for */
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
    if (!remembered || arrival_s > visitor->arrival_s) {
        visitor->arrival_s = arrival_s;
    }
    visitor->is_known = visitor->is_added = true;
    return step;
}
