#include "storage/log/chunk.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>

#include "storage/job/counted_name.h"
#include "tests/lib/dice.h"

TestSuite(chunk, .timeout = 60);

static const struct secret secret = {{1, 2, 3}};
static const struct identity_keys keys = {.secret = &secret};

#define EVENTS_MAX 300

/* One and the same text is a value of several dimensions, and has visitors at one site only. */
static void draw_values(struct dice *dice, struct event *event)
{
    static const struct event_value values[] = {{{"google", 6}, DIMENSION_SOURCE, true},
        {{"google", 6}, DIMENSION_SOURCE, false}, {{"google", 6}, DIMENSION_UTM_SOURCE, true},
        {{"Firefox", 7}, DIMENSION_BROWSER, false}, {{"google", 6}, DIMENSION_N, true},
        {{"DE", 2}, DIMENSION_COUNTRY, true}};
    const int64_t n = sizeof(values) / sizeof(values[0]);
    const int64_t first = dice_below(dice, n);
    event->values = values + first;
    event->n_values = (uint8_t)dice_below(dice, n - first + 1);
}

/* Random events, with what makes each of them special; texts live in static memory. */
static void draw_event(struct dice *dice, struct event *event)
{
    static char pages[40][40];
    static const struct slice actions[] = {
        {"checkin", 7}, {"active", 6}, {"a", 1}, {"x.y:z-", 6}, {"b", 1}};
    static const struct slice sites[] = {{"default", 7}, {"a.example", 9}, {"b", 1}};
    static const struct slice users[] = {
        {"", 0}, {"u1", 2}, {"42", 2}, {"somebody@example.org", 20}};
    unsigned page = (unsigned)dice_below(dice, 40);
    (void)snprintf(pages[page], sizeof(pages[page]), "/page/%u", page * page * page);
    *event = (struct event){
        .at_s = 1795190400 - (int64_t)dice_below(dice, dice_below(dice, 2) == 0 ? 60 : 40000000),
        .site = sites[dice_below(dice, 3)],
        .page = slice_of(pages[page]),
        .user = users[dice_below(dice, 4)],
        .agent = SLICE("Mozilla"),
        .actions = actions,
        .n_actions = dice_below(dice, 3) == 0 ? (uint8_t)dice_below(dice, 6) : 0,
    };
    static const struct slice visitors[] = {{"", 0}, {"", 0}, {"cookie-1", 8}, {"u1", 2}};
    event->visitor = visitors[dice_below(dice, 4)];
    if (dice_below(dice, 4) == 0) {
        event->page = dice_below(dice, 2) == 0 ? SLICE("") : SLICE("\1signup");
    }
    event->address.len = dice_below(dice, 2) == 0 ? 0 : 4;
    event->address.bytes[3] = (uint8_t)dice_below(dice, 5);
    event->index = (uint32_t)(dice_u64(dice) >> (32 + dice_below(dice, 32)));
    draw_values(dice, event);
}

static void check_values(const struct event *in, const struct chunk_reader *reader)
{
    const struct chunk_event *out = &reader->event;
    cr_assert_eq(out->n_values, in->n_values);
    for (unsigned i = 0; i < in->n_values; i++) {
        char text[VALUE_NAME_MAX];
        const struct chunk_value *value = &reader->values[out->values[i]];
        cr_assert(slice_equal(value->name, value_name(&in->values[i], text)));
        cr_assert_eq(value->with_visitors, in->values[i].with_visitors);
    }
}

static void check_event(
    const struct event *in, const struct chunk_event *out, const struct key_digest *ticket)
{
    struct visitor_id visitor;
    struct address_id address;
    bool visitor_is = identity_visitor(&keys, in, &visitor) &&
                      (in->user.n == 0 || in->visitor.n > 0) && in->page.n > 0;
    bool address_is = identity_address(&keys, in, &address) && in->page.n > 0;
    cr_assert_eq(out->at_s, in->at_s);
    cr_assert(slice_equal(out->site, in->site) && slice_equal(out->page, in->page) &&
              slice_equal(out->user, in->user));
    cr_assert_eq(out->n_actions, in->n_actions);
    for (unsigned i = 0; i < in->n_actions; i++) {
        cr_assert(slice_equal(out->actions[i], in->actions[i]));
    }
    cr_assert_eq(out->has_visitor, visitor_is);
    cr_assert_eq(out->has_address, address_is);
    cr_assert(!visitor_is || memcmp(&out->visitor, &visitor, sizeof(visitor)) == 0);
    bool asks = ticket != NULL && first_event_asks(in);
    cr_assert_eq(out->ticket != NULL, asks);
    cr_assert(!asks || (memcmp(out->ticket, ticket->bytes, sizeof(ticket->bytes)) == 0 &&
                           out->index == in->index));
    cr_assert(!address_is || memcmp(&out->address, &address, sizeof(address)) == 0);
}

/* ---- success ---- */

Test(chunk, requests_come_back_one_behind_the_other)
{
    uint64_t seed = dice_seed();
    struct dice dice = dice_make(seed);
    static struct event events[EVENTS_MAX];
    for (int round = 0; round < 60; round++) {
        struct buffer bytes;
        struct chunk_reader reader;
        size_t sizes[3];
        struct key_digest tickets[3];
        const struct key_digest *asks[3]; /* NULL: the request does not */
        size_t n = 0;
        buffer_init(&bytes);
        for (int c = 0; c < 3; c++) {
            sizes[c] = (size_t)dice_below(&dice, 100);
            dice_bytes(&dice, &tickets[c], sizeof(tickets[c]));
            asks[c] = dice_chance(&dice, 500) ? &tickets[c] : NULL;
            for (size_t i = 0; i < sizes[c]; i++) {
                draw_event(&dice, &events[n + i]);
            }
            cr_assert(chunk_write(&bytes, events + n, sizes[c], &keys, asks[c]));
            n += sizes[c];
        }
        chunk_reader_init(&reader, (struct slice){bytes.p, bytes.n});
        const struct event *next = events;
        for (int c = 0; c < 3; c++) {
            cr_assert(chunk_next(&reader), "TALLYD_TEST_SEED=%" PRIu64, seed);
            for (size_t i = 0; i < sizes[c]; i++) {
                cr_assert(chunk_next_event(&reader), "TALLYD_TEST_SEED=%" PRIu64, seed);
                check_values(next, &reader);
                check_event(next++, &reader.event, asks[c]);
            }
            cr_assert_not(chunk_next_event(&reader));
        }
        cr_assert(!chunk_next(&reader) && !reader.failed);
        chunk_reader_release(&reader);
        buffer_release(&bytes);
    }
}

Test(chunk, an_event_is_small)
{
    struct event event = {.at_s = 1795190400,
        .site = SLICE("default"),
        .page = SLICE("/articles/12345"),
        .user = SLICE("user-123456"),
        .address = {.len = 4, .bytes = {192, 0, 2, 1}}};
    struct event many[100];
    struct buffer bytes;
    buffer_init(&bytes);
    cr_assert(chunk_write(&bytes, &event, 1, &keys, NULL));
    cr_expect_leq(bytes.n, 60);
    buffer_clear(&bytes, SIZE_MAX);
    for (size_t i = 0; i < 100; i++) {
        many[i] = event;
        many[i].at_s += (int64_t)i;
    }
    cr_assert(chunk_write(&bytes, many, 100, &keys, NULL));
    cr_expect_leq(bytes.n, 100 * 25);
    buffer_release(&bytes);
}

Test(chunk, no_address_and_no_agent_is_in_it)
{
    struct event event = {.at_s = 1795190400,
        .site = SLICE("default"),
        .page = SLICE("/"),
        .agent = SLICE("Mozilla/5.0 (secret)"),
        .address = {.len = 4, .bytes = {203, 0, 113, 77}}};
    struct buffer bytes;
    buffer_init(&bytes);
    cr_assert(chunk_write(&bytes, &event, 1, &keys, NULL));
    cr_expect_null(memmem(bytes.p, bytes.n, "secret", 6));
    cr_expect_null(memmem(bytes.p, bytes.n, "\xcb\x00\x71\x4d", 4));
    buffer_release(&bytes);
}

/* ---- failure ---- */

/* Read all there is; how many events came. */
static size_t read_all(struct slice bytes, bool *ret_failed)
{
    struct chunk_reader reader;
    size_t n = 0;
    chunk_reader_init(&reader, bytes);
    while (chunk_next(&reader)) {
        while (chunk_next_event(&reader)) {
            n++;
        }
    }
    *ret_failed = reader.failed;
    chunk_reader_release(&reader);
    return n;
}

Test(chunk, what_is_cut_off_is_a_failure)
{
    struct event events[2] = {{.at_s = 1, .site = SLICE("a"), .page = SLICE("/")},
        {.at_s = 2, .site = SLICE("a"), .page = SLICE("/x"), .user = SLICE("u")}};
    struct buffer bytes;
    bool failed = true;
    buffer_init(&bytes);
    cr_assert(chunk_write(&bytes, events, 2, &keys, NULL));
    cr_expect_eq(read_all((struct slice){bytes.p, bytes.n}, &failed), 2);
    cr_expect_not(failed);
    for (size_t n = 1; n < bytes.n; n++) {
        cr_expect_lt(read_all((struct slice){bytes.p, n}, &failed), 2);
        cr_expect(failed, "%zu of %zu bytes", n, bytes.n);
    }
    buffer_release(&bytes);
}

Test(chunk, garbage_is_refused_or_read_and_never_harms)
{
    uint64_t seed = dice_seed();
    struct dice dice = dice_make(seed);
    char bytes[200];
    for (int round = 0; round < 20000; round++) {
        bool failed;
        size_t n = (size_t)dice_below(&dice, sizeof(bytes));
        for (size_t i = 0; i < n; i++) {
            bytes[i] = (char)dice_below(&dice, dice_below(&dice, 2) == 0 ? 8 : 256);
        }
        (void)read_all((struct slice){bytes, n}, &failed);
    }
}
