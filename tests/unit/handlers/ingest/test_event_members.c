#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/handlers/ingest/decoded.h"

/* One event alone is rejected, with this pointer and text. */
static void expect_reject(struct slice text, const char *pointer, const char *detail)
{
    struct decoded d = decode(text);

    cr_expect_eq(d.result, EVENT_JSON_OK, "%s", text.p);
    cr_expect_eq(d.batch.n, 0u, "%s", text.p);
    cr_expect_eq(d.batch.rejected, 1u, "%s", text.p);
    if (d.batch.n_rejects == 1) {
        cr_expect_str_eq(d.batch.rejects[0].pointer, pointer, "%s", text.p);
        cr_expect_str_eq(
            d.batch.rejects[0].detail, detail, "%s: %s", text.p, d.batch.rejects[0].detail);
        cr_expect_eq(d.batch.rejects[0].index, 0u, "%s", text.p);
    } else {
        cr_expect_fail("%s: %zu rejects", text.p, d.batch.n_rejects);
    }
    release(&d);
}

static void expect_accept(struct slice text)
{
    struct decoded d = decode(text);

    cr_expect_eq(d.result, EVENT_JSON_OK, "%s", text.p);
    cr_expect_eq(
        d.batch.n, 1u, "%s: %s", text.p, d.batch.n_rejects > 0 ? d.batch.rejects[0].detail : "");
    cr_expect_eq(d.batch.rejected, 0u, "%s", text.p);
    release(&d);
}

/* {"page":"/","<member>":"aaa..."} with @n letters. */
static char *with_long_text(const char *member, size_t n)
{
    char *text = malloc(n + 64);
    int used =
        sprintf(text, "{\"pag%s\":\"/\",\"%s\":\"", strcmp(member, "page") ? "e" : "", member);

    memset(text + used, 'a', n);
    memcpy(text + used + n, "\"}", 3);
    return text;
}

/* Success scenarios */

Test(event_members, every_member_arrives)
{
    struct decoded d = decode(SLICE("{\"page\":\"/a\\/b\",\"user\":\"u1\",\"ip\":\"203.0.113.7\","
                                    "\"ua\":\"Moz\\\"illa\",\"ts\":1763649000,\"referrer\":\"r\","
                                    "\"site\":\"shop\",\"actions\":[\"buy\",\"a:b\"]}"));
    const struct event *event = d.batch.events;

    cr_assert_eq(d.result, EVENT_JSON_OK);
    cr_assert_eq(d.batch.n, 1u);
    cr_expect_eq(event->at_s, 1763649000);
    cr_expect(slice_equal(event->page, SLICE("/a/b")));
    cr_expect(slice_equal(event->user, SLICE("u1")));
    cr_expect(slice_equal(event->agent, SLICE("Moz\"illa")));
    cr_expect(slice_equal(event->site, SLICE("shop")));
    cr_expect_eq(event->address.len, 4);
    cr_expect_arr_eq(event->address.bytes, "\xcb\x00\x71\x07", 4);
    cr_assert_eq(event->n_actions, 2);
    cr_expect(slice_equal(event->actions[0], SLICE("buy")));
    cr_expect(slice_equal(event->actions[1], SLICE("a:b")));
    release(&d);
}

Test(event_members, absent_members_have_defaults)
{
    struct decoded d = decode(SLICE(" {\"page\":\"/\"} \n"));
    const struct event *event = d.batch.events;

    cr_assert_eq(d.batch.n, 1u);
    cr_expect_eq(event->at_s, NOW);
    cr_expect(slice_equal(event->site, SLICE("default")));
    cr_expect_eq(event->user.n, 0u);
    cr_expect_eq(event->agent.n, 0u);
    cr_expect_eq(event->address.len, 0);
    cr_expect_eq(event->n_actions, 0);
    cr_expect_null(event->actions);
    release(&d);
}

Test(event_members, what_is_acceptable_is_accepted)
{
    static const char *const rows[] = {
        "{\"page\":\"/\",\"ua\":null,\"referrer\":null}",
        "{\"page\":\"/\",\"ua\":\"\",\"referrer\":\"\"}",
        "{\"page\":\"/\",\"ua\":\"\\n\\u007f\"}",
        "{\"p\\u0061ge\":\"/\"}",
        "{\"page\":\" \"}",
        "{\"page\":\"\xe4\xba\xac\\ud83d\\ude00\"}",
        "{\"page\":\"/\",\"actions\":[]}",
        "{\"page\":\"/\",\"actions\":[\"a\",\"a\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\"]}",
        "{\"page\":\"/\",\"x\":1e999,\"y\":123456789012345678901234567890,\"z\":-0.0}",
        "{\"page\":\"/\",\"x\":{\"page\":\"/\",\"page\":[]},\"x\":2,\"x\":[[[]]]}",
        "{\"\":0,\"Page\":1,\"pages\":2,\"pag\":3,\"tss\":4,\"page\":\"/\"}",
        "{\"page\":\"/\",\"tx\":1,\"uu\":2,\"iq\":3,\"abcd\":4,\"abcdefg\":5,\"abcdefgh\":6}",
        "{\"page\":\"/\",\"name_with_\\n\":true}",
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        expect_accept(slice_of(rows[i]));
    }
}

Test(event_members, users_are_text_or_integers)
{
    static const struct {
        const char *value, *user;
    } rows[] = {
        {"\"42\"", "42"},
        {"42", "42"},
        {"0", "0"},
        {"-0", "0"},
        {"-7", "-7"},
        {"9223372036854775808", "9223372036854775808"},
        {"18446744073709551615", "18446744073709551615"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"18446744073709551616", "18446744073709551616"},
        {"-9223372036854775809", "-9223372036854775809"},
        {"340282366920938463463374607431768211456", "340282366920938463463374607431768211456"},
        {"\"\\u00e9\"", "\xc3\xa9"},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        char text[128];
        struct decoded d;

        sprintf(text, "{\"page\":\"/\",\"user\":%s}", rows[i].value);
        d = decode(slice_of(text));
        cr_assert_eq(d.batch.n, 1u, "%s", rows[i].value);
        cr_expect(slice_equal(d.batch.events->user, slice_of(rows[i].user)), "%s", rows[i].value);
        release(&d);
    }
}

Test(event_members, times_are_numbers_or_rfc_3339)
{
    static const struct {
        const char *value;
        int64_t at_s;
    } rows[] = {
        {"1763650000", 1763650000},
        {"1763650000.9", 1763650000},
        {"1763650000123", 1763650000},
        {"1763650000999.9", 1763650000},
        {"1.76365e9", 1763650000},
        {"1.76365e12", 1763650000},
        {"17636500001e-1", 1763650000},
        {"1763650300", LATEST},
        {"1763650300.999", LATEST},
        {"1763477200", OLDEST},
        {"\"2025-11-20T14:46:40Z\"", 1763650000},
        {"\"2025-11-20T14\\u003a46:40z\"", 1763650000},
        {"\"2025-11-20t15:46:40.5+01:00\"", 1763650000},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        char text[128];
        struct decoded d;

        sprintf(text, "{\"ts\":%s,\"page\":\"/\"}", rows[i].value);
        d = decode(slice_of(text));
        cr_assert_eq(d.batch.n, 1u, "%s", rows[i].value);
        cr_expect_eq(d.batch.events->at_s, rows[i].at_s, "%s", rows[i].value);
        release(&d);
    }
}

Test(event_members, texts_have_their_limits)
{
    static const struct {
        const char *member, *pointer, *detail;
        size_t most;
    } rows[] = {
        {"page", "/page", "page must be at most 2048 bytes", 2048},
        {"user", "/user", "user must be at most 256 bytes", 256},
        {"ua", "/ua", "ua must be at most 16384 bytes", 16384},
        {"referrer", "/referrer", "referrer must be at most 16384 bytes", 16384},
        {"site", "/site", "site must be 1 to 64 bytes", 64},
        {"event", "/event", "event must be at most 128 bytes", 128},
        {"visitor", "/visitor", "visitor must be at most 256 bytes", 256},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        char *text = with_long_text(rows[i].member, rows[i].most);

        expect_accept(slice_of(text));
        free(text);
        text = with_long_text(rows[i].member, rows[i].most + 1);
        expect_reject(slice_of(text), rows[i].pointer, rows[i].detail);
        free(text);
    }
}

/* What an event is, its page says: see storage/job/event.h. */
Test(event_members, what_an_event_is)
{
    static const struct {
        const char *text, *page;
    } rows[] = {
        {"{\"page\":\"/\"}", "/"},
        {"{\"event\":\"signup\"}", "\1signup"},
        {"{ \"event\" :\"\\u0061\\\"b\" , \"page\":\"/x\" }", "\1a\"b"},
        {"{\"page\":\"/x\",\"event\":\"/x\"}", "\1/x"},
        {"{\"user\":7,\"actions\":[\"a\"]}", ""},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        struct decoded d = decode(slice_of(rows[i].text));

        cr_assert_eq(d.batch.n, 1u, "%s", rows[i].text);
        cr_expect(slice_equal(d.batch.events->page, slice_of(rows[i].page)), "%s", rows[i].text);
        release(&d);
    }
}

/* Failure scenarios */

Test(event_members, a_bad_member_rejects_its_event)
{
    static const struct {
        const char *members, *pointer, *detail;
    } rows[] = {
        {"", "/page", "one of page, event and actions is required"},
        {"\"Page\":\"/\"", "/page", "one of page, event and actions is required"},
        {"\"user\":1,\"actions\":[]", "/page", "one of page, event and actions is required"},
        {"\"actions\":[\"a\"]", "/user",
            "user is required where actions stand without page and event"},
        {"\"event\":\"\"", "/event", "event must not be empty"},
        {"\"event\":null,\"page\":\"/\"", "/event", "event must be a string"},
        {"\"event\":\"a\\u0001\"", "/event", "event must not hold control characters"},
        {"\"event\":\"a\",\"page\":\"\"", "/page", "page must not be empty"},
        {"\"page\":\"/\",\"visitor\":7", "/visitor", "visitor must be a string"},
        {"\"page\":\"/\",\"visitor\":\"\"", "/visitor", "visitor must not be empty"},
        {"\"page\":\"/\",\"visitor\":\"\\t\"", "/visitor",
            "visitor must not hold control characters"},
        {"\"page\":null", "/page", "page must be a string"},
        {"\"page\":7", "/page", "page must be a string"},
        {"\"page\":[\"/\"]", "/page", "page must be a string"},
        {"\"page\":{}", "/page", "page must be a string"},
        {"\"page\":\"\"", "/page", "page must not be empty"},
        {"\"page\":\"/\\n\"", "/page", "page must not hold control characters"},
        {"\"page\":\"/\x7f\"", "/page", "page must not hold control characters"},
        {"\"page\":\"/\\u001F\"", "/page", "page must not hold control characters"},
        {"\"page\":\"/\",\"user\":\"\"", "/user", "user must not be empty"},
        {"\"page\":\"/\",\"user\":\"\\t\"", "/user", "user must not hold control characters"},
        {"\"page\":\"/\",\"user\":null", "/user", "user must be a string or an integer"},
        {"\"page\":\"/\",\"user\":true", "/user", "user must be a string or an integer"},
        {"\"page\":\"/\",\"user\":[1]", "/user", "user must be a string or an integer"},
        {"\"page\":\"/\",\"user\":1.0", "/user",
            "user as a number must be an integer, without fraction and exponent"},
        {"\"page\":\"/\",\"user\":1e3", "/user",
            "user as a number must be an integer, without fraction and exponent"},
        {"\"page\":\"/\",\"site\":\"\"", "/site", "site must be 1 to 64 bytes"},
        {"\"page\":\"/\",\"site\":\"-a\"", "/site", "site must match [a-z0-9][a-z0-9._-]*"},
        {"\"page\":\"/\",\"site\":\"A\"", "/site", "site must match [a-z0-9][a-z0-9._-]*"},
        {"\"page\":\"/\",\"site\":null", "/site", "site must be a string"},
        {"\"page\":\"/\",\"ip\":null", "/ip", "ip must be a string"},
        {"\"page\":\"/\",\"ip\":1", "/ip", "ip must be a string"},
        {"\"page\":\"/\",\"ip\":\"\"", "/ip", "ip must be an IPv4 or IPv6 address"},
        {"\"page\":\"/\",\"ip\":\"1.2.3.04\"", "/ip", "ip must be an IPv4 or IPv6 address"},
        {"\"page\":\"/\",\"ua\":1", "/ua", "ua must be a string or null"},
        {"\"page\":\"/\",\"ua\":false", "/ua", "ua must be a string or null"},
        {"\"page\":\"/\",\"referrer\":{}", "/referrer", "referrer must be a string or null"},
        {"\"page\":\"/\",\"ts\":null", "/ts", "ts must be a number or a string in RFC 3339"},
        {"\"page\":\"/\",\"ts\":true", "/ts", "ts must be a number or a string in RFC 3339"},
        {"\"page\":\"/\",\"ts\":-1", "/ts", "ts must not be negative"},
        {"\"page\":\"/\",\"ts\":-0", "/ts", "ts must not be negative"},
        {"\"page\":\"/\",\"ts\":-0.5", "/ts", "ts must not be negative"},
        {"\"page\":\"/\",\"ts\":\"1763650000\"", "/ts",
            "ts as a string must be RFC 3339 with an offset"},
        {"\"page\":\"/\",\"ts\":\"2025-11-20T14:46:40\"", "/ts",
            "ts as a string must be RFC 3339 with an offset"},
        {"\"page\":\"/\",\"ts\":\"\"", "/ts", "ts as a string must be RFC 3339 with an offset"},
        {"\"page\":\"/\",\"ts\":1763650301", "/ts", "ts is too far in the future"},
        {"\"page\":\"/\",\"ts\":1e400", "/ts", "ts is too far in the future"},
        {"\"page\":\"/\",\"ts\":99999999999999999999999", "/ts", "ts is too far in the future"},
        {"\"page\":\"/\",\"ts\":\"2025-11-20T14:51:41Z\"", "/ts", "ts is too far in the future"},
        {"\"page\":\"/\",\"ts\":1763477199", "/ts", "ts is older than everything that is kept"},
        {"\"page\":\"/\",\"ts\":0", "/ts", "ts is older than everything that is kept"},
        {"\"page\":\"/\",\"actions\":null", "/actions", "actions must be an array"},
        {"\"page\":\"/\",\"actions\":\"a\"", "/actions", "actions must be an array"},
        {"\"page\":\"/\",\"actions\":{\"a\":1}", "/actions", "actions must be an array"},
        {"\"page\":\"/\",\"actions\":[1]", "/actions/0", "an action must be a string"},
        {"\"page\":\"/\",\"actions\":[\"a\",[\"b\"]]", "/actions/1", "an action must be a string"},
        {"\"page\":\"/\",\"actions\":[\"a\",\"b\",\"\"]", "/actions/2",
            "an action must be 1 to 64 bytes"},
        {"\"page\":\"/\",\"actions\":[\"A\"]", "/actions/0", "an action must match [a-z0-9._:-]+"},
        {"\"page\":\"/\",\"actions\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\"]",
            "/actions", "actions must be at most 8"},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        char text[256];

        sprintf(text, "{%s}", rows[i].members);
        expect_reject(slice_of(text), rows[i].pointer, rows[i].detail);
    }
}

Test(event_members, a_known_member_twice_rejects_its_event)
{
    static const char *const names[] = {
        "page", "user", "ip", "ua", "ts", "referrer", "site", "actions"};
    static const char *const values[] = {
        "\"/\"", "1", "\"1.2.3.4\"", "null", "1763650000", "null", "\"s\"", "[]"};

    for (size_t i = 0; i < ROWS(names); i++) {
        char text[256], pointer[16];

        sprintf(pointer, "/%s", names[i]);
        sprintf(text, "{\"%s\":%s,\"%s\":%s}", names[i], values[i], names[i], values[i]);
        expect_reject(slice_of(text), pointer, "the member is given twice");
        sprintf(text, "{\"%s\":%s,\"\\u00%x%s\":{\"x\":[1]}}", names[i], values[i],
            (unsigned)names[i][0], names[i] + 1);
        expect_reject(slice_of(text), pointer, "the member is given twice");
    }
}

Test(event_members, unusable_text_anywhere_rejects_its_event)
{
    static const struct {
        const char *members, *pointer, *detail;
    } rows[] = {
        {"\"page\":\"\xff\"", "/page", "invalid UTF-8"},
        {"\"page\":\"\\u0000\"", "/page", "\\u0000 is not allowed"},
        {"\"page\":\"\\ud800\"", "/page", "half of a surrogate pair"},
        {"\"page\":{\"\xff\":1}", "/page", "invalid UTF-8"},
        {"\"page\":\"/\",\"user\":\"\xc3\"", "/user", "invalid UTF-8"},
        {"\"page\":\"/\",\"ua\":\"\xed\xa0\x80\"", "/ua", "invalid UTF-8"},
        {"\"page\":\"/\",\"referrer\":\"\\udc00\"", "/referrer", "half of a surrogate pair"},
        {"\"page\":\"/\",\"ts\":\"\xff\"", "/ts", "invalid UTF-8"},
        {"\"page\":\"/\",\"ip\":\"\\u0000\"", "/ip", "\\u0000 is not allowed"},
        {"\"page\":\"/\",\"site\":\"\xff\"", "/site", "invalid UTF-8"},
        {"\"page\":\"/\",\"actions\":[\"a\",\"\xff\"]", "/actions", "invalid UTF-8"},
        {"\"page\":\"/\",\"actions\":\"\xff\"", "/actions", "invalid UTF-8"},
        {"\"page\":\"/\",\"x\":\"\xff\"", "/x", "invalid UTF-8"},
        {"\"page\":\"/\",\"x\":[0,{\"y\":\"\xff\"}]", "/x", "invalid UTF-8"},
        {"\"page\":\"/\",\"x\":[0,{\"\\u0000\":1}]", "/x", "\\u0000 is not allowed"},
        {"\"page\":\"/\",\"a/b~c\":\"\xff\"", "/a~1b~0c", "invalid UTF-8"},
        {"\"page\":\"/\",\"\":\"\xff\"", "/", "invalid UTF-8"},
        {"\"page\":\"/\",\"a name as long as this one, and it is longer than any name has to be, "
         "is not told\":\"\xff\"",
            "", "invalid UTF-8"},
        {"\"page\":\"/\",\"\xff\":1", "", "invalid UTF-8"},
        {"\"page\":\"/\",\"\\u0000\":1", "", "\\u0000 is not allowed"},
        {"\"\\ud800\":1,\"page\":\"/\"", "", "half of a surrogate pair"},
        {"\"page\xff\":1", "", "invalid UTF-8"},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        char text[256];

        sprintf(text, "{%s}", rows[i].members);
        expect_reject(slice_of(text), rows[i].pointer, rows[i].detail);
    }
}

Test(event_members, the_first_fault_is_the_one_that_is_told)
{
    expect_reject(SLICE("{\"page\":1,\"user\":\"\",\"page\":2}"), "/page", "page must be a string");
    expect_reject(SLICE("{\"user\":\"\",\"page\":1}"), "/user", "user must not be empty");
    expect_reject(SLICE("{\"ip\":\"x\"}"), "/ip", "ip must be an IPv4 or IPv6 address");
    expect_reject(SLICE("{\"page\":\"\",\"\xff\":\"\xff\"}"), "/page", "page must not be empty");
    expect_reject(SLICE("{\"actions\":[\"A\",1,\"\xff\"]}"), "/actions/0",
        "an action must match [a-z0-9._:-]+");
}
