/* Which events an import makes of lines: the server must take each of them. */
#include "service/client/import_batch.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "storage/job/event.h"

TestSuite(import_batch, .timeout = 60);

static struct log_line line_of(const char *client, bool is_ip)
{
    return (struct log_line){.client = slice_of(client),
        .client_is_ip = is_ip,
        .at_s = 1795187834,
        .page = SLICE("/p"),
        .target = SLICE("/p"),
        .ua = SLICE("Mozilla")};
}

/* The event that becomes of @line in a batch of @site. */
static json_t *event_of(const struct log_line *line, const char *site, const char *of_line)
{
    struct import_batch *batch = import_batch_new(site);
    cr_assert_not_null(batch);
    import_batch_add_event(batch, line, slice_of(of_line), 7);
    cr_expect_eq(import_batch_line(batch, 0), 7);
    struct slice body = import_batch_body(batch, 0, 1);
    json_t *event = json_loadb(body.p, body.n, 0, NULL);
    cr_assert_not_null(event, "%.*s", (int)body.n, body.p);
    import_batch_free(batch);
    return event;
}

static const char *text_of(const json_t *event, const char *name)
{
    const char *text = json_string_value(json_object_get(event, name));
    return text != NULL ? text : "-";
}

static void expect(const struct log_line *line, const char *name, const char *value)
{
    json_t *event = event_of(line, NULL, "");
    cr_expect_str_eq(text_of(event, name), value, "%s", name);
    json_decref(event);
}

Test(import_batch, a_host_that_is_no_address_becomes_a_user)
{
    struct log_line host = line_of("host.example", false), other = host, silent = host;
    other.ua = SLICE("Other");
    silent.ua = (struct slice){NULL, 0};
    json_t *first = event_of(&host, NULL, ""), *again = event_of(&host, NULL, "");
    json_t *second = event_of(&other, NULL, ""), *third = event_of(&silent, NULL, "");
    cr_expect_eq(strlen(text_of(first, "user")), strlen("host-") + 32);
    cr_expect_eq(strncmp(text_of(first, "user"), "host-", 5), 0);
    cr_expect_str_eq(text_of(first, "user"), text_of(again, "user"));
    cr_expect_str_neq(text_of(first, "user"), text_of(second, "user"), "another browser");
    cr_expect_str_neq(text_of(first, "user"), text_of(third, "user"), "no browser");
    cr_expect_str_eq(text_of(first, "ip"), "-", "no address is counted");
    cr_expect_str_eq(text_of(first, "ua"), "-");
    json_decref(first), json_decref(again), json_decref(second), json_decref(third);
}

Test(import_batch, an_address_is_sent_with_its_browser)
{
    struct log_line line = line_of("192.0.2.1", true);
    line.ua = SLICE("a\"b\\c\x01\x1f");
    expect(&line, "ip", "192.0.2.1");
    expect(&line, "ua", "a\"b\\c\x01\x1f");
    line.ua = (struct slice){NULL, 0};
    expect(&line, "ua", "-");
}

Test(import_batch, a_referrer_that_the_server_would_refuse_is_left_out)
{
    static char text[EVENT_TEXT_MAX + 1];
    struct log_line line = line_of("192.0.2.1", true);
    memset(text, 'r', sizeof(text));
    line.referrer = SLICE("https://example.org/\xc3\xa4");
    expect(&line, "referrer", "https://example.org/\xc3\xa4");
    static const char *const refused[] = {"", "-", "a\tb", "a\x7f", "a\xff"};
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        line.referrer = slice_of(refused[i]);
        expect(&line, "referrer", "-");
    }
    line.referrer = (struct slice){text, sizeof(text)};
    expect(&line, "referrer", "-");
    line.referrer.n--;
    json_t *event = event_of(&line, NULL, "");
    cr_expect_eq(strlen(text_of(event, "referrer")), EVENT_TEXT_MAX);
    json_decref(event);
}

Test(import_batch, a_campaign_is_read_from_a_target_of_sane_length)
{
    static char text[8192];
    struct log_line line = line_of("192.0.2.1", true);
    (void)snprintf(text, sizeof(text), "/p?utm_source=letter&x=%-4096d", 1);
    line.target = SLICE("/p?utm_source=letter");
    expect(&line, "utm_source", "letter");
    line.target = slice_of(text);
    expect(&line, "utm_source", "-");
}

/* What the client asked for comes before what a rewrite may have made of it. */
Test(import_batch, a_query_that_is_kept_apart_is_read_where_the_target_has_none)
{
    struct log_line line = line_of("192.0.2.1", true);
    line.query = SLICE("utm_source=apart");
    expect(&line, "utm_source", "apart");
    line.target = SLICE("/p?utm_source=letter");
    expect(&line, "utm_source", "letter");
}

Test(import_batch, a_query_that_is_kept_apart_has_a_sane_length)
{
    static char text[8192];
    struct log_line line = line_of("192.0.2.1", true);
    (void)snprintf(text, sizeof(text), "utm_source=apart&x=%-8000d", 1);
    line.query = (struct slice){text, 4095};
    expect(&line, "utm_source", "apart");
    line.query.n = 4096;
    expect(&line, "utm_source", "-");
    line.query.n = strlen(text);
    expect(&line, "utm_source", "-");
}

Test(import_batch, the_site_of_a_line_comes_before_the_batch_s)
{
    struct log_line line = line_of("192.0.2.1", true);
    json_t *event = event_of(&line, "all", "own");
    cr_expect_str_eq(text_of(event, "site"), "own");
    json_decref(event);
    event = event_of(&line, "all", "");
    cr_expect_str_eq(text_of(event, "site"), "all");
    cr_expect_eq(json_integer_value(json_object_get(event, "ts")), 1795187834);
    json_decref(event);
    expect(&line, "site", "-");
}

/* A line of NDJSON stays as it is, but for a site that it lacks. */
Test(import_batch, lines_of_json)
{
    static const struct {
        const char *site, *line, *sent;
    } cases[] = {
        {NULL, "{\"page\":\"/\"}", "{\"page\":\"/\"}\n"},
        {NULL, "nothing of JSON", "nothing of JSON\n"},
        {"s", "{\"page\":\"/\"}", "{\"site\":\"s\",\"page\":\"/\"}\n"},
        {"s", " { \"page\":\"/\"}", "{\"site\":\"s\", \"page\":\"/\"}\n"},
        {"s", "{}", "{\"site\":\"s\"}\n"},
        {"s", "{\"site\":\"own\"}", "{\"site\":\"own\"}\n"},
        {"s", "{\"n\":99999999999999999999}", "{\"site\":\"s\",\"n\":99999999999999999999}\n"},
        {"s", "{\"n\":[1e999]}", "{\"site\":\"s\",\"n\":[1e999]}\n"},
        {"s", "{\"n\":1, \"\\u0073ite\":\"own\"}", "{\"n\":1, \"\\u0073ite\":\"own\"}\n"},
        {"s", "{\"n\":{\"site\":1}}", "{\"site\":\"s\",\"n\":{\"site\":1}}\n"},
        {"s", "{\"n\":\"\\u0000\"}", NULL},
        {"s", "{\"n\":1,}", NULL},
        {"s", "{\"n\":1}{}", NULL},
        {"s", "[{\"page\":\"/\"}]", NULL},
        {"s", "[]", NULL},
        {"s", "{\"page\":", NULL},
        {"s", "", NULL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct import_batch *batch = import_batch_new(cases[i].site);
        cr_assert_not_null(batch);
        bool added = import_batch_add_json(batch, slice_of(cases[i].line), i);
        cr_expect_eq(added, cases[i].sent != NULL, "%s", cases[i].line);
        cr_expect_eq(import_batch_count(batch), added ? 1 : 0);
        if (added) {
            struct slice body = import_batch_body(batch, 0, 1);
            cr_expect(slice_equal(body, slice_of(cases[i].sent)), "%.*s", (int)body.n, body.p);
            cr_expect_eq(import_batch_is_object(batch, 0), cases[i].line[0] != 'n');
        }
        import_batch_free(batch);
    }
}

Test(import_batch, it_is_full_of_events_or_of_bytes)
{
    static char text[60000];
    struct import_batch *batch = import_batch_new(NULL);
    cr_assert_not_null(batch);
    for (unsigned i = 0; i < IMPORT_BATCH_EVENTS; i++) {
        cr_assert_not(import_batch_full(batch), "%u", i);
        cr_assert(import_batch_add_json(batch, SLICE("{}"), i));
    }
    cr_expect(import_batch_full(batch));
    import_batch_clear(batch);
    cr_expect_not(import_batch_full(batch));
    memset(text, 'x', sizeof(text));
    size_t n = 0;
    for (; !import_batch_full(batch); n++) {
        cr_assert(import_batch_add_json(batch, (struct slice){text, sizeof(text)}, n));
    }
    cr_expect_lt(n, IMPORT_BATCH_BYTES / sizeof(text));
    cr_expect_leq(import_batch_body(batch, 0, n).n, IMPORT_BATCH_BYTES);
    import_batch_free(batch);
}
