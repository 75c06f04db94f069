/* chunk_write.c - the events of one request as bytes for the log. */
#include "storage/log/chunk.h"

#include <stdlib.h>

#include <xxhash.h>

#include "storage/base/index.h"
#include "storage/job/counted_name.h"

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

/* The request that the chunk is of. */
struct chunk_sender {
    const struct identity_keys *keys;
    const struct key_digest *ticket; /* NULL: there is none, or the chunk has it already */
    bool asks;                       /* the request has a ticket */
};

/* The pages, or the values, that the chunk has so far, each as it came first. */
struct numbered {
    bool single; /* the chunk has one event: no two of its pages or values are alike */
    struct index index;
    const void **all; /* owned array of pointers into the events */
    size_t n_all, all_capacity;
};

struct wanted {
    const struct numbered *numbered;
    const void *what;
};

static bool same_page(const void *context, uint32_t item)
{
    const struct wanted *wanted = context;
    return slice_equal(
        *(const struct slice *)wanted->numbered->all[item], *(const struct slice *)wanted->what);
}

static bool same_value(const void *context, uint32_t item)
{
    const struct wanted *wanted = context;
    const struct event_value *a = wanted->numbered->all[item];
    const struct event_value *b = wanted->what;
    return a->dimension == b->dimension && a->with_visitors == b->with_visitors &&
           slice_equal(a->text, b->text);
}

/* The number of @what, which has @text.  *ret_new: the number was given just now.  INDEX_NONE: out
 * of memory. */
static uint32_t number_of(struct numbered *numbered, const void *what, struct slice text,
    bool (*same)(const void *context, uint32_t item), bool *ret_new)
{
    if (numbered->single) {
        *ret_new = true;
        return (uint32_t)numbered->n_all++;
    }
    struct wanted wanted = {numbered, what};
    uint32_t number =
        INDEX_ADD(numbered, index, all, XXH3_64bits(text.p, text.n), same, &wanted, ret_new);
    if (*ret_new) {
        numbered->all[number] = what;
    }
    return number;
}

static void numbered_release(struct numbered *numbered)
{
    index_release(&numbered->index);
    free(numbered->all);
}

/* False: out of memory. */
static bool put_values(struct buffer *out, const struct event *event, struct numbered *values)
{
    buffer_append(out, &event->n_values, 1);
    for (unsigned i = 0; i < event->n_values; i++) {
        const struct event_value *value = &event->values[i];
        bool is_new;
        uint32_t number = number_of(values, value, value->text, same_value, &is_new);
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

/* The event asks whether its actions were first: write the ticket, once, and the event's number. */
static void put_first(struct buffer *out, struct chunk_sender *sender, uint32_t index)
{
    if (sender->ticket != NULL) {
        buffer_append(out, sender->ticket->bytes, sizeof(sender->ticket->bytes));
        sender->ticket = NULL;
    }
    put_number(out, index);
}

static bool put_event(struct buffer *out, const struct event *event, const struct event *before,
    struct numbered *pages, struct numbered *values, struct chunk_sender *sender)
{
    struct visitor_id visitor;
    struct address_id address;
    bool no_page = event->page.n == 0;
    bool new_page = false;
    uint32_t page = no_page ? 0 : number_of(pages, &event->page, event->page, same_page, &new_page);
    if (page == INDEX_NONE) {
        return false;
    }
    bool site = before == NULL || !slice_equal(event->site, before->site);
    bool is_user = event->user.n > 0 && event->visitor.n == 0; /* the user is the visitor */
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
    struct numbered pages = {.single = n == 1};
    struct numbered values = {.single = n == 1};
    struct chunk_sender sender = {keys, ticket, ticket != NULL};
    size_t before = out->n;
    bool ok = !out->failed;
    if (ok) {
        put_number(out, n);
    }
    for (size_t i = 0; ok && i < n; i++) {
        const struct event *last = i == 0 ? NULL : &events[i - 1];
        ok = put_event(out, &events[i], last, &pages, &values, &sender);
    }
    numbered_release(&pages);
    numbered_release(&values);
    if (!ok || out->failed) {
        out->n = before;
        return false;
    }
    return true;
}
