#include "handlers/ingest/segment_json.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#define NOW 1763650000

struct decoded {
    char *text;
    enum segment_result result;
    struct segment_body body;
};

/* Decoded in a heap copy that ends with the body: a sanitizer sees one byte too many. */
static struct decoded decode(enum segment_call call, struct slice text)
{
    const struct event_rules rules = {
        .now_s = NOW, .latest_s = NOW + 300, .oldest_s = NOW - 86400, .max_events = 3};
    struct decoded d = {.text = malloc(text.n)};
    memcpy(d.text, text.p, text.n);
    d.result = segment_decode(d.text, text.n, call, &rules, &d.body);
    return d;
}

static void release(struct decoded *d)
{
    segment_body_release(&d->body);
    free(d->text);
}

Test(segment_json, calls)
{
    cr_expect_eq(segment_call_of(SLICE("batch")), SEGMENT_BATCH);
    cr_expect_eq(segment_call_of(SLICE("screen")), SEGMENT_SCREEN);
    cr_expect_eq(segment_call_of(SLICE("Page")), SEGMENT_UNKNOWN);
    cr_expect_eq(segment_call_of(SLICE("")), SEGMENT_UNKNOWN);
    cr_expect_eq(segment_call_of(SLICE("p")), SEGMENT_UNKNOWN);
    cr_expect_eq(segment_call_of_path(SLICE("track")), SEGMENT_TRACK);
    cr_expect_eq(segment_call_of_path(SLICE("t")), SEGMENT_TRACK);
    cr_expect_eq(segment_call_of_path(SLICE("b")), SEGMENT_BATCH);
    cr_expect_eq(segment_call_of_path(SLICE("x")), SEGMENT_UNKNOWN);
    cr_expect_eq(segment_call_of_path(SLICE("tr")), SEGMENT_UNKNOWN);
    cr_expect_eq(segment_call_of_path(SLICE("")), SEGMENT_UNKNOWN);
}

Test(segment_json, a_page_becomes_an_event)
{
    struct decoded d = decode(SEGMENT_PAGE,
        SLICE("{\"properties\":{\"path\":\"/x\",\"url\":\"https:\\/\\/a.example/\\u00e4?b#c\"},"
              "\"userId\":42,\"context\":{\"ip\":\"::ffff:192.0.2.7\",\"userAgent\":\"ua\"},"
              "\"timestamp\":\"2025-11-20T14:46:39Z\",\"messageId\":\"m\",\"writeKey\":\"k\"}"));
    cr_assert(d.result == SEGMENT_OK && d.body.n == 1 && d.body.rejected == 0);
    const struct event *event = &d.body.events[0];
    cr_expect(slice_equal(event->page, SLICE("/\xc3\xa4")));
    cr_expect(slice_equal(event->user, SLICE("42")));
    cr_expect(slice_equal(event->agent, SLICE("ua")));
    cr_expect_eq(event->address.len, 4);
    cr_expect_eq(event->at_s, NOW - 1);
    cr_expect(slice_equal(d.body.write_key, SLICE("k")));
    cr_expect(d.body.all_have_ids && d.body.ids.n == 2 && memcmp(d.body.ids.p, "m", 2) == 0);
    release(&d);
}

Test(segment_json, a_track_becomes_a_named_event)
{
    struct decoded d = decode(SEGMENT_TRACK,
        SLICE("{\"event\":\"Order\\u0020Completed\",\"anonymousId\":\"a1\",\"userId\":null,"
              "\"properties\":{\"path\":\"/x\"}}"));
    cr_assert(d.result == SEGMENT_OK && d.body.n == 1 && d.body.uncounted == 0);
    const struct event *event = &d.body.events[0];
    cr_expect(slice_equal(event->page, SLICE("\x01Order Completed")));
    cr_expect(slice_equal(event->visitor, SLICE("a1")) && event->user.n == 0);
    release(&d);
}

Test(segment_json, each_message_has_one_fate)
{
    struct decoded d = decode(SEGMENT_BATCH,
        SLICE("{\"writeKey\":\"k\",\"batch\":[{\"type\":\"page\",\"properties\":{\"path\":\"/a\"}},"
              "{\"type\":\"group\"},{\"type\":\"track\",\"messageId\":\"x\"}]}"));
    cr_assert_eq(d.result, SEGMENT_OK);
    cr_expect(d.body.n == 1 && d.body.uncounted == 1 && d.body.rejected == 1);
    cr_expect_eq(d.body.events[0].at_s, NOW);
    cr_expect(d.body.fault_index == 2 && strcmp(d.body.fault_at, "event") == 0);
    cr_expect_not(d.body.all_have_ids);
    cr_expect(slice_equal(d.body.write_key, SLICE("k")));
    release(&d);
}

/* A text that cannot be used spoils its own message, not the next one. */
Test(segment_json, a_fault_is_of_one_message)
{
    struct decoded d = decode(SEGMENT_BATCH,
        SLICE("{\"\\ud800\":1,\"batch\":[{\"type\":\"page\",\"x\":\"\\ud800\",\"properties\":"
              "{\"path\":\"/a\"}},{\"type\":\"page\",\"properties\":{\"path\":\"/b\"}}]}"));
    cr_assert(d.result == SEGMENT_OK && d.body.n == 1 && d.body.rejected == 1);
    cr_expect(slice_equal(d.body.events[0].page, SLICE("/b")));
    cr_expect_str_eq(d.body.fault_at, "text");
    release(&d);
}

Test(segment_json, bodies_that_are_none)
{
    static const struct {
        const char *text;
        enum segment_result result;
    } rows[] = {
        {"[]", SEGMENT_MALFORMED},
        {"{}", SEGMENT_MALFORMED},
        {"{\"batch\":null}", SEGMENT_MALFORMED},
        {"{\"batch\":[],\"batch\":[]}", SEGMENT_MALFORMED},
        {"{\"batch\":[]} x", SEGMENT_MALFORMED},
        {"{\"batch\":[]}", SEGMENT_OK},
        {"{\"batch\":[{},{},{}]}", SEGMENT_OK},
        {"{\"batch\":[{},{},{},{}]}", SEGMENT_TOO_MANY},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct decoded d = decode(SEGMENT_BATCH, slice_of(rows[i].text));
        cr_expect_eq(d.result, rows[i].result, "%s", rows[i].text);
        release(&d);
    }
}
