/* chunk_write.c - the events of one request as bytes for the log. */
#include "storage/log/chunk.h"

#include <stdlib.h>

#include <xxhash.h>

#include "storage/base/index.h"
#include "storage/job/counted_name.h"
#include "storage/log/chunk_format.h"
#include "storage/schema/partition.h"

#define VARINT_MAX 10 /* bytes of a 64-bit number */

static void put_number(struct buffer *out, uint64_t value)
{
    uint8_t bytes[VARINT_MAX];
    size_t n = 0;
    for (; value >= 0x80; value >>= 7) {
        bytes[n++] = (uint8_t)(value | 0x80);
    }
    bytes[n++] = (uint8_t)value;
    buffer_append(out, bytes, n);
}

/* 0, -1, 1, -2, .. become 0, 1, 2, 3, .. */
static uint64_t zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

static void put_text(struct buffer *out, struct slice text)
{
    put_number(out, text.n);
    buffer_append(out, text.p, text.n);
}

/* Of whom the events are. */
struct chunk_sender {
    const struct identity_keys *keys;
    const struct key_digest *ticket; /* NULL: none, or it is written already */
    bool asks;                       /* there was one */
};

/* The pages of the chunk so far: the first event of each. */
struct chunk_pages {
    const struct event *events;
    struct index index;
    uint32_t *numbers; /* of the page of the event at that place */
    uint32_t n;
};

struct page_wanted {
    const struct event *events;
    struct slice page;
};

static bool same_page(const void *context, uint32_t item)
{
    const struct page_wanted *wanted = context;
    return slice_equal(wanted->events[item].page, wanted->page);
}

/* The number of the page of event @i.  *ret_new: it is the first with this page.  INDEX_NONE: out
 * of memory. */
static uint32_t number_page(struct chunk_pages *pages, uint32_t i, bool *ret_new)
{
    struct page_wanted wanted = {pages->events, pages->events[i].page};
    *ret_new = wanted.page.n > 0;
    if (pages->numbers == NULL || !*ret_new) { /* a single event, or no page */
        return 0;
    }
    if (!index_reserve(&pages->index)) {
        return INDEX_NONE;
    }
    uint64_t hash = page_hash(SLICE(""), wanted.page);
    struct index_slot *slot = index_find(&pages->index, hash, same_page, &wanted);
    *ret_new = slot->item == INDEX_NONE;
    if (*ret_new) {
        pages->numbers[i] = pages->n++;
        index_set(&pages->index, slot, hash, i);
        return pages->numbers[i];
    }
    return pages->numbers[slot->item];
}

/* The values of the chunk so far, each as it came first. */
struct chunk_values {
    bool single; /* one event: no two values are alike */
    struct index index;
    const struct event_value **all; /* owned */
    size_t n, capacity;
};

struct value_wanted {
    const struct chunk_values *values;
    const struct event_value *value;
};

static bool same_value(const void *context, uint32_t item)
{
    const struct value_wanted *wanted = context;
    const struct event_value *a = wanted->values->all[item];
    const struct event_value *b = wanted->value;
    return a->dimension == b->dimension && a->with_visitors == b->with_visitors &&
           slice_equal(a->text, b->text);
}

/* The number of a value.  *ret_new: it comes for the first time.  INDEX_NONE: out of memory. */
static uint32_t number_value(
    struct chunk_values *values, const struct event_value *value, bool *ret_new)
{
    struct value_wanted wanted = {values, value};
    *ret_new = true;
    if (values->single) {
        return (uint32_t)values->n++;
    }
    if (!index_reserve(&values->index) ||
        !array_reserve(&values->all, &values->capacity, values->n, sizeof(struct event_value *))) {
        return INDEX_NONE;
    }
    uint64_t hash = XXH3_64bits_withSeed(value->text.p, value->text.n, value->dimension);
    struct index_slot *slot = index_find(&values->index, hash, same_value, &wanted);
    *ret_new = slot->item == INDEX_NONE;
    if (*ret_new) {
        uint32_t number = (uint32_t)values->n++;
        values->all[number] = value;
        index_set(&values->index, slot, hash, number);
        return number;
    }
    return slot->item;
}

/* False: out of memory. */
static bool put_values(struct buffer *out, const struct event *event, struct chunk_values *values)
{
    buffer_append(out, &event->n_values, 1);
    for (unsigned i = 0; i < event->n_values; i++) {
        const struct event_value *value = &event->values[i];
        bool is_new;
        uint32_t number = number_value(values, value, &is_new);
        if (number == INDEX_NONE) {
            return false;
        }
        put_number(out, number);
        if (is_new) {
            char text[VALUE_NAME_MAX];
            struct slice name = value_name(value, text);
            put_number(out, name.n << 1 | value->with_visitors);
            buffer_append(out, name.p, name.n);
        }
    }
    return true;
}

static void put_actions(struct buffer *out, const struct event *event)
{
    buffer_append(out, &event->n_actions, 1);
    for (unsigned i = 0; i < event->n_actions; i++) {
        put_text(out, event->actions[i]);
    }
}

/* The event asks: by which ticket, and as which one. */
static void put_first(struct buffer *out, struct chunk_sender *sender, uint32_t index)
{
    if (sender->ticket != NULL) {
        buffer_append(out, sender->ticket->bytes, sizeof(sender->ticket->bytes));
        sender->ticket = NULL;
    }
    put_number(out, index);
}

static bool put_event(struct buffer *out, const struct event *event, const struct event *before,
    struct chunk_pages *pages, struct chunk_values *values, struct chunk_sender *sender)
{
    struct visitor_id visitor;
    struct address_id address;
    bool new_page = true;
    uint32_t page = number_page(pages, (uint32_t)(event - pages->events), &new_page);
    if (page == INDEX_NONE) {
        return false;
    }
    bool site = before == NULL || !slice_equal(event->site, before->site);
    bool no_page = event->page.n == 0;
    bool is_user = event->user.n > 0 && event->visitor.n == 0; /* the visitor */
    bool has_visitor = !no_page && !is_user && identity_visitor(sender->keys, event, &visitor);
    bool has_address =
        !sender->keys->no_addresses && !no_page && identity_address(sender->keys, event, &address);
    bool first = sender->asks && first_event_asks(event);
    unsigned flags = (site ? CHUNK_SITE : 0u) | (new_page ? CHUNK_PAGE : 0u) |
                     (event->user.n > 0 ? CHUNK_USER : 0u) | (has_visitor ? CHUNK_VISITOR : 0u) |
                     (has_address ? CHUNK_ADDRESS : 0u) |
                     (event->n_actions > 0 ? CHUNK_ACTIONS : 0u) | (no_page ? CHUNK_NO_PAGE : 0u) |
                     (event->n_values > 0 ? CHUNK_VALUES : 0u) | (first ? CHUNK_FIRST : 0u);
    put_number(out, flags);
    put_number(out, zigzag(event->at_s - (before == NULL ? 0 : before->at_s)));
    if (site) {
        put_text(out, event->site);
    }
    if (new_page) {
        put_text(out, event->page);
    } else if (!no_page) {
        put_number(out, page);
    }
    if (event->user.n > 0) {
        put_text(out, event->user);
    }
    if (has_visitor) {
        buffer_append(out, visitor.bytes, sizeof(visitor.bytes));
    }
    if (has_address) {
        buffer_append(out, address.bytes, sizeof(address.bytes));
    }
    if (event->n_actions > 0) {
        put_actions(out, event);
    }
    if (first) {
        put_first(out, sender, event->index);
    }
    return event->n_values == 0 || put_values(out, event, values);
}

bool chunk_write(struct buffer *out, const struct event *events, size_t n,
    const struct identity_keys *keys, const struct key_digest *ticket)
{
    struct chunk_pages pages = {.events = events};
    struct chunk_values values = {.single = n == 1};
    struct chunk_sender sender = {keys, ticket, ticket != NULL};
    size_t before = out->n;
    bool ok = !out->failed;
    if (n > 1) {
        pages.numbers = malloc(n * sizeof(*pages.numbers));
        ok = ok && pages.numbers != NULL;
    }
    if (ok) {
        put_number(out, n);
    }
    for (size_t i = 0; ok && i < n; i++) {
        const struct event *last = i == 0 ? NULL : &events[i - 1];
        ok = put_event(out, &events[i], last, &pages, &values, &sender);
    }
    index_release(&pages.index);
    index_release(&values.index);
    free(values.all);
    free(pages.numbers);
    if (!ok || out->failed) {
        out->n = before;
        return false;
    }
    return true;
}
