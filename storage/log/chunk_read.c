/* chunk_read.c - the events of one request, from their bytes in the log. */
#include "storage/log/chunk.h"

#include <stdlib.h>

#include "storage/base/index.h"
#include "storage/job/counted_name.h"

void chunk_reader_init(struct chunk_reader *reader, struct slice bytes)
{
    *reader = (struct chunk_reader){.left = bytes};
}

void chunk_reader_release(struct chunk_reader *reader)
{
    free(reader->pages);
    free(reader->values);
    *reader = (struct chunk_reader){0};
}

static bool fail(struct chunk_reader *reader)
{
    reader->failed = true;
    return false;
}

static bool run_out(struct chunk_reader *reader)
{
    reader->no_memory = true;
    return fail(reader);
}

static bool get_bytes(struct chunk_reader *reader, size_t n, struct slice *ret)
{
    if (n > reader->left.n) {
        return fail(reader);
    }
    *ret = (struct slice){reader->left.p, n};
    reader->left.p += n;
    reader->left.n -= n;
    return true;
}

static bool get_number(struct chunk_reader *reader, uint64_t *ret)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && reader->left.n > 0; shift += 7) {
        uint8_t byte = (uint8_t)*reader->left.p++;
        reader->left.n--;
        if (shift == 63 && byte > 1) {
            break; /* beyond 64 bits */
        }
        value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            *ret = value;
            return true;
        }
    }
    return fail(reader);
}

/* A text of 1 to @max bytes. */
static bool get_text(struct chunk_reader *reader, size_t max, struct slice *ret)
{
    uint64_t n = 0;
    if (!get_number(reader, &n)) {
        return false;
    }
    return n >= 1 && n <= max ? get_bytes(reader, (size_t)n, ret) : fail(reader);
}

static int64_t unzigzag(uint64_t value)
{
    return (int64_t)(value >> 1 ^ ((value & 1) != 0 ? UINT64_MAX : 0));
}

static bool get_time(struct chunk_reader *reader, struct chunk_event *event)
{
    uint64_t number = 0;
    return get_number(reader, &number) &&
           (!__builtin_add_overflow(event->at_s, unzigzag(number), &event->at_s) || fail(reader));
}

static bool get_page(struct chunk_reader *reader, unsigned flags, struct chunk_event *event)
{
    uint64_t number = 0;
    bool is_new = (flags & CHUNK_PAGE) != 0;
    event->page = (struct slice){NULL, 0};
    if ((flags & CHUNK_NO_PAGE) != 0) {
        return !is_new || fail(reader);
    }
    if (!is_new) {
        if (!get_number(reader, &number) || number >= reader->n_pages) {
            return fail(reader);
        }
        event->page = reader->pages[number];
        return true;
    }
    if (!get_text(reader, EVENT_PAGE_MAX, &event->page)) {
        return false;
    }
    if (!ARRAY_RESERVE(reader, pages)) {
        return run_out(reader);
    }
    reader->pages[reader->n_pages++] = event->page;
    return true;
}

/* Read a byte that says how many items follow, from 1 to @max. */
static bool get_count(struct chunk_reader *reader, uint8_t max, uint8_t *ret)
{
    struct slice n;
    if (!get_bytes(reader, 1, &n)) {
        return false;
    }
    *ret = (uint8_t)n.p[0];
    return (*ret >= 1 && *ret <= max) || fail(reader);
}

static bool get_actions(struct chunk_reader *reader, struct chunk_event *event)
{
    event->actions = reader->actions;
    if (!get_count(reader, EVENT_ACTIONS_MAX, &event->n_actions)) {
        return false;
    }
    for (unsigned i = 0; i < event->n_actions; i++) {
        if (!get_text(reader, EVENT_ACTION_MAX, &reader->actions[i])) {
            return false;
        }
    }
    return true;
}

/* Read a value that comes for the first time in the chunk. */
static bool get_new_value(struct chunk_reader *reader)
{
    uint64_t head = 0;
    struct slice name;
    if (!get_number(reader, &head) || head >> 1 < 2 || head >> 1 > VALUE_NAME_MAX) {
        return fail(reader);
    }
    if (!get_bytes(reader, (size_t)(head >> 1), &name)) {
        return false;
    }
    char mark = counted_name_mark(name);
    if (mark != NAME_MARK_VALUE && mark != NAME_MARK_SECTION) {
        return fail(reader);
    }
    if (!ARRAY_RESERVE(reader, values)) {
        return run_out(reader);
    }
    reader->values[reader->n_values++] = (struct chunk_value){name, (head & 1) != 0, UINT32_MAX};
    return true;
}

static bool get_values(struct chunk_reader *reader, struct chunk_event *event)
{
    uint64_t number = 0;
    event->values = reader->numbers;
    if (!get_count(reader, EVENT_VALUES_MAX, &event->n_values)) {
        return false;
    }
    for (unsigned i = 0; i < event->n_values; i++) {
        if (!get_number(reader, &number) || number > reader->n_values) {
            return fail(reader);
        }
        if (number == reader->n_values && !get_new_value(reader)) {
            return false;
        }
        reader->numbers[i] = (uint32_t)number;
    }
    return true;
}

static bool get_hash(struct chunk_reader *reader, void *to, size_t n)
{
    struct slice bytes;
    if (!get_bytes(reader, n, &bytes)) {
        return false;
    }
    memcpy(to, bytes.p, n);
    return true;
}

/* Read, behind the actions, by which ticket the request asks whether they were first. */
static bool get_first(struct chunk_reader *reader, unsigned flags, struct chunk_event *event)
{
    struct slice ticket;
    uint64_t index = 0;
    if ((flags & CHUNK_USER) == 0 || (flags & CHUNK_ACTIONS) == 0) {
        return fail(reader);
    }
    if (reader->ticket == NULL) {
        if (!get_bytes(reader, sizeof(struct key_digest), &ticket)) {
            return false;
        }
        reader->ticket = (const uint8_t *)ticket.p;
    }
    if (!get_number(reader, &index) || index > UINT32_MAX) {
        return fail(reader);
    }
    event->ticket = reader->ticket;
    event->index = (uint32_t)index;
    return true;
}

bool chunk_next(struct chunk_reader *reader)
{
    if (reader->failed || reader->left.n == 0) {
        return false;
    }
    reader->n_pages = reader->n_values = 0;
    reader->ticket = NULL;
    reader->event = (struct chunk_event){0};
    return get_number(reader, &reader->n_left);
}

bool chunk_next_event(struct chunk_reader *reader)
{
    struct chunk_event *event = &reader->event;
    uint64_t head = 0;
    if (reader->failed || reader->n_left == 0 || !get_number(reader, &head)) {
        return false;
    }
    unsigned flags = (unsigned)head & CHUNK_FLAGS;
    event->user = (struct slice){NULL, 0};
    event->actions = NULL;
    event->n_actions = 0;
    event->values = NULL;
    event->n_values = 0;
    event->ticket = NULL;
    event->has_visitor = (flags & CHUNK_VISITOR) != 0;
    event->has_address = (flags & CHUNK_ADDRESS) != 0;
    if (head != flags || !get_time(reader, event) ||
        ((flags & CHUNK_SITE) != 0 && !get_text(reader, EVENT_SITE_MAX, &event->site)) ||
        event->site.n == 0 || !get_page(reader, flags, event) ||
        ((flags & CHUNK_USER) != 0 && !get_text(reader, EVENT_USER_MAX, &event->user)) ||
        (event->has_visitor &&
            !get_hash(reader, event->visitor.bytes, sizeof(event->visitor.bytes))) ||
        (event->has_address &&
            !get_hash(reader, event->address.bytes, sizeof(event->address.bytes))) ||
        ((flags & CHUNK_ACTIONS) != 0 && !get_actions(reader, event)) ||
        ((flags & CHUNK_FIRST) != 0 && !get_first(reader, flags, event)) ||
        ((flags & CHUNK_VALUES) != 0 && !get_values(reader, event))) {
        return fail(reader);
    }
    reader->n_left--;
    return true;
}
