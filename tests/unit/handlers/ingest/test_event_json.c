#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/handlers/ingest/decoded.h"

/* Success scenarios */

Test(event_json, an_empty_array_is_fine)
{
    struct decoded d = decode(SLICE(" [ ] "));

    cr_expect_eq(d.result, EVENT_JSON_OK);
    cr_expect_eq(d.batch.n + d.batch.rejected + d.batch.n_rejects, 0u);
    release(&d);
}

/* The array of actions grows while events already hold theirs. */
Test(event_json, actions_stay_with_their_events)
{
    enum { N = 500 };
    char *text = malloc(N * 64);
    size_t n = 0;
    struct decoded d;

    text[n++] = '[';
    for (int i = 0; i < N; i++) {
        n += (size_t)sprintf(text + n, "%s{\"page\":\"/%s\",\"actions\":[", i == 0 ? "" : ",",
            i % 7 == 3 ? "\\u0000" : "");
        for (int j = 0; j < i % 4; j++) {
            n += (size_t)sprintf(text + n, "%s\"a%d.%d\"", j == 0 ? "" : ",", i, j);
        }
        n += (size_t)sprintf(text + n, "]}");
    }
    text[n++] = ']';
    d = decode((struct slice){text, n});
    cr_assert_eq(d.result, EVENT_JSON_OK);
    for (int i = 0, k = 0; i < N; i++) {
        if (i % 7 == 3) {
            continue;
        }
        cr_assert_eq(d.batch.events[k].n_actions, i % 4);
        for (int j = 0; j < i % 4; j++) {
            char name[32];

            sprintf(name, "a%d.%d", i, j);
            cr_expect(slice_equal(d.batch.events[k].actions[j], slice_of(name)), "%s", name);
        }
        k++;
    }
    release(&d);
    free(text);
}

Test(event_json, lines_are_events)
{
    struct decoded d = decode_lines(SLICE("{\"page\":\"/0\"}\r\n"
                                          " \t\r\n"
                                          "\n"
                                          "  {\"page\":\"/3\"}  \n"
                                          "{\"page\":\"/4\"}"));

    cr_assert_eq(d.result, EVENT_JSON_OK);
    cr_assert_eq(d.batch.n, 3u);
    cr_expect_eq(d.batch.rejected, 0u);
    cr_expect(slice_equal(d.batch.events[0].page, SLICE("/0")));
    cr_expect(slice_equal(d.batch.events[1].page, SLICE("/3")));
    cr_expect(slice_equal(d.batch.events[2].page, SLICE("/4")));
    release(&d);
}

Test(event_json, the_limit_itself_is_not_too_many)
{
    struct decoded d = decode_form(SLICE("[{\"page\":\"/\"},1]"), EVENT_BODY_JSON, 2);

    cr_expect_eq(d.result, EVENT_JSON_OK);
    cr_expect_eq(d.batch.n, 1u);
    cr_expect_eq(d.batch.rejected, 1u);
    release(&d);
    d = decode_form(SLICE("{}\n\n{}\n\n"), EVENT_BODY_NDJSON, 2);
    cr_expect_eq(d.result, EVENT_JSON_OK);
    release(&d);
    d = decode_form(SLICE("[]"), EVENT_BODY_JSON, 0);
    cr_expect_eq(d.result, EVENT_JSON_OK);
    release(&d);
}

Test(event_json, events_beyond_the_first_guess_are_kept)
{
    enum { N = 10000 };
    char *text = malloc(N * 16);
    size_t n = 0;
    struct decoded d;

    for (int i = 0; i < N; i++) {
        n += (size_t)sprintf(text + n, "{\"page\":\"%d\"}\n", i % 10);
    }
    d = decode_lines((struct slice){text, n});
    cr_expect_eq(d.result, EVENT_JSON_OK);
    cr_assert_eq(d.batch.n, (size_t)N);
    cr_expect_leq(d.batch.capacity, (size_t)N);
    for (int i = 0; i < N; i++) {
        if (d.batch.events[i].page.p[0] != '0' + i % 10) {
            cr_assert_fail("event %d", i);
        }
    }
    release(&d);
    free(text);
}

/* Failure scenarios */

Test(event_json, a_bad_element_leaves_the_others_alone)
{
    struct decoded d = decode(SLICE("[{\"page\":\"/0\"},7,\"s\\u0000\",[{\"page\":\"/\"}],null,"
                                    "{\"page\":\"\xff\"},{\"page\":\"/6\"},{}]"));
    static const size_t indices[] = {1, 2, 3, 4, 5, 7};

    cr_assert_eq(d.result, EVENT_JSON_OK);
    cr_expect_eq(d.batch.n, 2u);
    cr_expect_eq(d.batch.rejected, 6u);
    cr_assert_eq(d.batch.n_rejects, 6u);
    for (size_t i = 0; i < 6; i++) {
        cr_expect_eq(d.batch.rejects[i].index, indices[i], "%zu", i);
    }
    for (size_t i = 0; i < 4; i++) {
        cr_expect_str_eq(d.batch.rejects[i].pointer, "");
        cr_expect_str_eq(d.batch.rejects[i].detail, "an event must be an object");
    }
    cr_expect_str_eq(d.batch.rejects[5].pointer, "/page");
    cr_expect(slice_equal(d.batch.events[1].page, SLICE("/6")));
    release(&d);
}

Test(event_json, a_hundred_rejects_are_listed_and_all_are_counted)
{
    char text[500];
    struct decoded d;

    memset(text, ',', sizeof(text));
    for (size_t i = 1; i < sizeof(text); i += 2) {
        text[i] = '1';
    }
    text[0] = '[';
    text[498] = ']';
    d = decode((struct slice){text, 499});
    cr_expect_eq(d.result, EVENT_JSON_OK);
    cr_expect_eq(d.batch.rejected, 249u);
    cr_assert_eq(d.batch.n_rejects, (size_t)EVENT_REJECTS_LISTED);
    cr_expect_eq(d.batch.rejects[99].index, 99u);
    release(&d);
}

Test(event_json, what_is_not_json_spoils_the_body)
{
    static const struct {
        struct slice text;
        size_t line, column;
        const char *detail;
    } rows[] = {
        {{NULL, 0}, 1, 1, "the body holds no JSON"},
        {SLICE(" "), 1, 2, "the body holds no JSON"},
        {SLICE("\r\n\t\n"), 3, 1, "the body holds no JSON"},
        {SLICE("\xef\xbb\xbf{\"page\":\"/\"}"), 1, 1, "a byte order mark is not allowed"},
        {SLICE("\xef\xbb\xbf"), 1, 1, "a byte order mark is not allowed"},
        {SLICE("\"text\""), 1, 1, "an object or an array is expected"},
        {SLICE("\n 42"), 2, 2, "an object or an array is expected"},
        {SLICE("null"), 1, 1, "an object or an array is expected"},
        {SLICE("tea"), 1, 1, "an object or an array is expected"},
        {SLICE("page=/"), 1, 1, "a value is expected"},
        {SLICE("{\"page\":\"/\"} x"), 1, 14, "nothing may follow the value"},
        {SLICE("{\"page\":\"/\"}{\"page\":\"/\"}"), 1, 13, "nothing may follow the value"},
        {SLICE("[{\"page\":\"/\"},"), 1, 15, "a value is expected"},
        {SLICE("[{\"page\":\"/\"},]"), 1, 15, "a value is expected"},
        {SLICE("[{\"page\":\"/\"}"), 1, 14, "',' or ']' is expected"},
        {SLICE("[\n{\"page\":\"/\\n\"},\n{\"page\":\"/\",\n \"user\":01}]"), 4, 10,
            "a number must not begin with 0"},
        {SLICE("{\"page\":\"a\nb\"}"), 1, 11, "a control character in a string must be escaped"},
        {SLICE("{\"page\":\"/\",\"ua\":nil}"), 1, 18, "a value is expected"},
        {SLICE("{\"page\":\"/\",\"actions\":[\"a\",]}"), 1, 28, "a value is expected"},
        /* also behind an event that is rejected already, and in what is ignored */
        {SLICE("{\"page\":1,\"user\":}"), 1, 18, "a value is expected"},
        {SLICE("{\"page\":\"/\",\"x\":[1,}"), 1, 20, "a value is expected"},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        struct decoded d = decode(rows[i].text);

        cr_expect_eq(d.result, EVENT_JSON_MALFORMED, "row %zu", i);
        cr_expect_eq(d.batch.line, rows[i].line, "row %zu: line %zu", i, d.batch.line);
        cr_expect_eq(d.batch.column, rows[i].column, "row %zu: column %zu", i, d.batch.column);
        cr_expect_str_eq(d.batch.detail, rows[i].detail, "row %zu: %s", i, d.batch.detail);
        cr_expect_eq(d.batch.n + d.batch.rejected + d.batch.n_rejects, 0u, "row %zu", i);
        release(&d);
    }
}

/* {"page":"/","x":[[..]]} with @depth containers in each other. */
static size_t print_nested(char *text, size_t depth)
{
    size_t n = (size_t)sprintf(text, "{\"page\":\"/\",\"x\":");

    memset(text + n, '[', depth - 1);
    memset(text + n + depth - 1, ']', depth - 1);
    n += 2 * (depth - 1);
    text[n++] = '}';
    return n;
}

Test(event_json, depth_counts_from_the_root_of_the_body)
{
    char text[256];
    size_t n = print_nested(text + 1, EVENT_DEPTH_MAX);
    struct decoded d = decode((struct slice){text + 1, n});

    cr_expect_eq(d.result, EVENT_JSON_OK);
    cr_expect_eq(d.batch.n, 1u);
    release(&d);
    text[0] = '[';
    text[n + 1] = ']';
    d = decode((struct slice){text, n + 2});
    cr_expect_eq(d.result, EVENT_JSON_MALFORMED);
    cr_expect_str_eq(d.batch.detail, "nested too deeply");
    release(&d);
    text[n + 1] = '\n';
    n = 1 + n + 1 + print_nested(text + n + 2, EVENT_DEPTH_MAX + 1);
    d = decode_lines((struct slice){text + 1, n - 1});
    cr_expect_eq(d.result, EVENT_JSON_OK);
    cr_expect_eq(d.batch.n, 1u);
    cr_assert_eq(d.batch.n_rejects, 1u);
    cr_expect_eq(d.batch.rejects[0].index, 1u);
    cr_expect_str_eq(d.batch.rejects[0].detail, "malformed JSON at column 48: nested too deeply");
    release(&d);
}

Test(event_json, a_bad_line_is_rejected_alone)
{
    static const struct {
        size_t index;
        const char *pointer, *detail;
    } rows[] = {
        {1, "", "malformed JSON at column 13: nothing may follow the value"},
        {4, "", "malformed JSON at column 10: a string is not closed"},
        {5, "", "an event must be an object"},
        {6, "/page", "one of page, event and actions is required"},
        {7, "", "malformed JSON at column 10: ',' or '}' is expected"},
        {8, "", "malformed JSON at column 1: a value is expected"},
        {9, "/page", "invalid UTF-8"},
    };
    struct decoded d = decode_lines(SLICE("{\"page\":\"/\"}\n"
                                          "{\"page\":\"/\"}{\"page\":\"/\"}\n"
                                          "\r\n"
                                          "{\"page\":\"/\"}\n"
                                          "{\"page\":\"\n"
                                          "[{\"page\":\"/\"}]\n"
                                          "{}\n"
                                          "{\"page\":1\n"
                                          "\xef\xbb\xbf{}\n"
                                          "{\"page\":\"\xff\"}\n"
                                          "{\"page\":\"/\"}\n"));

    cr_assert_eq(d.result, EVENT_JSON_OK);
    cr_expect_eq(d.batch.n, 3u);
    cr_expect_eq(d.batch.rejected, 7u);
    cr_assert_eq(d.batch.n_rejects, ROWS(rows));
    for (size_t i = 0; i < ROWS(rows); i++) {
        cr_expect_eq(d.batch.rejects[i].index, rows[i].index, "%zu", i);
        cr_expect_str_eq(d.batch.rejects[i].pointer, rows[i].pointer, "%zu", i);
        cr_expect_str_eq(
            d.batch.rejects[i].detail, rows[i].detail, "%zu: %s", i, d.batch.rejects[i].detail);
    }
    release(&d);
}

Test(event_json, lines_without_json_spoil_the_body)
{
    static const struct {
        struct slice text;
        const char *detail;
    } rows[] = {
        {{NULL, 0}, "the body holds no JSON"},
        {SLICE("\n"), "the body holds no JSON"},
        {SLICE(" \t\r\n\r\n"), "the body holds no JSON"},
        {SLICE("\xef\xbb\xbf{\"page\":\"/\"}\n"), "a byte order mark is not allowed"},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        struct decoded d = decode_lines(rows[i].text);

        cr_expect_eq(d.result, EVENT_JSON_MALFORMED, "row %zu", i);
        cr_expect_str_eq(d.batch.detail, rows[i].detail, "row %zu", i);
        cr_expect_geq(d.batch.line, 1u);
        cr_expect_geq(d.batch.column, 1u);
        release(&d);
    }
}

Test(event_json, too_many_events_are_refused)
{
    static const struct {
        struct slice text;
        enum event_body form;
    } rows[] = {
        {SLICE("[{\"page\":\"/\"},{\"page\":\"/\"},{\"page\":\"/\"}]"), EVENT_BODY_JSON},
        {SLICE("[{},{\"page\":\"/\"},1]"), EVENT_BODY_JSON}, /* rejected ones count */
        {SLICE("{}\n\n{}\n{\"page\":\"/\"}\n"), EVENT_BODY_NDJSON},
        {SLICE("x\ny\nz"), EVENT_BODY_NDJSON},
    };
    struct decoded d;

    for (size_t i = 0; i < ROWS(rows); i++) {
        d = decode_form(rows[i].text, rows[i].form, 2);
        cr_expect_eq(d.result, EVENT_JSON_TOO_MANY, "row %zu", i);
        cr_expect_eq(d.batch.n + d.batch.rejected + d.batch.n_rejects, 0u, "row %zu", i);
        release(&d);
    }
    d = decode_form(SLICE("{\"page\":\"/\"}"), EVENT_BODY_JSON, 0);
    cr_expect_eq(d.result, EVENT_JSON_TOO_MANY);
    release(&d);
}

/* ---- what is dropped, and what else the rules ask for ---- */

static struct decoded decode_with(struct slice text, struct event_rules rules)
{
    struct decoded d = {.body = malloc(text.n)};
    rules.now_s = NOW;
    rules.latest_s = LATEST;
    rules.oldest_s = OLDEST;
    rules.max_events = 100;
    memcpy(d.body, text.p, text.n);
    d.batch = (struct event_batch){0};
    d.result = event_json_decode(d.body, text.n, EVENT_BODY_JSON, &rules, &d.batch);
    return d;
}

Test(event_json, robots_and_networks_are_dropped)
{
    static struct robots_cache robots;
    struct network network;
    robots_cache_init(&robots, (const unsigned char[ROBOTS_CACHE_KEY_BYTES]){0});
    cr_assert_null(network_parse(SLICE("192.0.2.0/24"), &network));
    struct slice text =
        SLICE("[{\"page\":\"/\",\"ua\":\"Googlebot/2\",\"actions\":[\"a\"]},"
              "{\"page\":\"/\",\"ip\":\"192.0.2.9\"},{\"page\":\"/a\",\"actions\":[\"b\"]},"
              "{\"ua\":\"Googlebot/2\"}]");
    struct decoded d = decode_with(
        text, (struct event_rules){.robots = &robots, .ignored = &network, .n_ignored = 1});
    cr_assert_eq(d.result, EVENT_JSON_OK);
    cr_assert(d.batch.n == 1 && d.batch.rejected == 1 && d.batch.dropped == 2);
    cr_expect(slice_equal(d.batch.events[0].actions[0], SLICE("b")));
    cr_assert_eq(d.batch.n_drops, 2);
    cr_expect(d.batch.drops[0].index == 0 && d.batch.drops[0].reason == DROP_ROBOT);
    cr_expect(d.batch.drops[1].index == 1 && d.batch.drops[1].reason == DROP_IGNORED);
    cr_expect_eq(d.batch.dropped_robots, 1);
    release(&d);
    d = decode_with(text, (struct event_rules){0});
    cr_expect(d.batch.n == 3 && d.batch.dropped == 0);
    release(&d);
}

Test(event_json, a_time_is_seen_behind_a_fault)
{
    static const struct {
        const char *text;
        bool untimed;
    } rows[] = {
        {"{\"page\":1,\"ts\":1763650000}", false},
        {"{\"ts\":1763650000,\"page\":1}", false},
        {"{\"page\":\"\\ud800\",\"ts\":1763650000}", false},
        {"{\"page\":\"/\",\"ts\":\"never\"}", false},
        {"{\"page\":\"/\"}", true},
        {"{\"user\":\"u\"}", true},
        {"{\"page\":1,\"t\":1}", true},
        {"1", false},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        char text[100];
        (void)snprintf(text, sizeof(text), "[%s]", rows[i].text);
        struct decoded d = decode_with(slice_of(text), (struct event_rules){.needs_time = true});
        cr_expect_eq(d.batch.untimed, rows[i].untimed, "%s", text);
        release(&d);
    }
}
