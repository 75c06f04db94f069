#include "handlers/access/client.h"

#include <criterion/criterion.h>

#include "handlers/http/app.h"
#include "handlers/text/check.h"

/* The client of a request from @peer with these fields; 10/8 and ::1 are trusted. */
static void check(const char *peer, const char *const *fields, unsigned n, const char *expected)
{
    struct network trusted[2];
    struct slice forwarded[HTTP_FORWARDED_MAX];
    struct event_address wanted = {0};
    cr_assert_null(network_parse(SLICE("10.0.0.0/8"), &trusted[0]));
    cr_assert_null(network_parse(SLICE("::1"), &trusted[1]));
    for (unsigned i = 0; i < n; i++) {
        forwarded[i] = slice_of(fields[i]);
    }
    struct app app = {.trusted = trusted, .n_trusted = 2};
    struct http_exchange exchange = {
        .app = &app, .request = {.peer = slice_of(peer), .forwarded = forwarded, .n_forwarded = n}};
    struct event_address address = client_address(&exchange);
    if (expected[0] != '\0') {
        cr_assert_null(event_parse_address(slice_of(expected), &wanted));
    }
    cr_expect(address.len == wanted.len && memcmp(address.bytes, wanted.bytes, wanted.len) == 0,
        "%s, [%s], not %s", peer, n > 0 ? fields[n - 1] : "", expected);
}

Test(client, who_is_believed)
{
    static const struct {
        const char *peer, *field, *expected;
    } rows[] = {
        {"192.0.2.1", "198.51.100.7", "192.0.2.1"}, /* a stranger may say what it likes */
        {"10.0.0.1", "198.51.100.7", "198.51.100.7"},
        {"::1", "198.51.100.7", "198.51.100.7"},
        {"10.0.0.1", "6.6.6.6, 198.51.100.7", "198.51.100.7"},
        {"10.0.0.1", "6.6.6.6,198.51.100.7 , 10.9.9.9\t,10.0.0.2", "198.51.100.7"},
        {"10.0.0.1", "10.0.0.3,10.0.0.2", "10.0.0.3"}, /* all are ours: the furthest */
        {"10.0.0.1", "198.51.100.7:4711", "198.51.100.7"},
        {"10.0.0.1", "2001:db8::1", "2001:db8::1"},
        {"10.0.0.1", "[2001:db8::1]", "2001:db8::1"},
        {"10.0.0.1", "[2001:db8::1]:4711", "2001:db8::1"},
        {"10.0.0.1", "::ffff:198.51.100.7", "198.51.100.7"},
        {"10.0.0.1", "198.51.100.7, unknown", "10.0.0.1"}, /* the list ends at what is none */
        {"10.0.0.1", "198.51.100.7, unknown, 10.0.0.2", "10.0.0.2"},
        {"10.0.0.1", "", "10.0.0.1"},
        {"10.0.0.1", " , ,198.51.100.7,, ", "198.51.100.7"},
        {"10.0.0.1", "198.51.100.7:", "198.51.100.7"},
        {"10.0.0.1", "[", "10.0.0.1"},
        {"", "198.51.100.7", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check(rows[i].peer, &rows[i].field, 1, rows[i].expected);
    }
}

Test(client, several_fields_are_one_list)
{
    static const char *const fields[] = {"6.6.6.6", "198.51.100.7, 10.0.0.3", "10.0.0.2"};
    check("10.0.0.1", fields, 3, "198.51.100.7");
    check("10.0.0.1", fields, 1, "6.6.6.6");
    check("10.0.0.1", fields, 0, "10.0.0.1");
}

/* What client_mirrored_target() makes of these fields, the peer being @peer; 10/8 is trusted. */
static void check_mirrored(
    const char *peer, const char *original, const char *forwarded, const char *expected)
{
    struct network trusted;
    cr_assert_null(network_parse(SLICE("10.0.0.0/8"), &trusted));
    struct app app = {.trusted = &trusted, .n_trusted = 1};
    struct slice fields[HTTP_KNOWN_N] = {
        [FIELD_ORIGINAL_URI] = slice_of(original), [FIELD_FORWARDED_URI] = slice_of(forwarded)};
    struct http_exchange exchange = {
        .app = &app, .request = {.peer = slice_of(peer), .fields = fields}};
    cr_expect(slice_equal(client_mirrored_target(&exchange), slice_of(expected)),
        "%s: \"%s\", \"%s\" is not \"%s\"", peer, original, forwarded, expected);
    exchange.request.repeated = 1u << FIELD_ORIGINAL_URI;
    cr_expect(original[0] == '\0' || client_mirrored_target(&exchange).n == 0);
}

Test(client, what_was_asked_of_the_proxy)
{
    check_mirrored("10.0.0.1", "/a", "", "/a");
    check_mirrored("10.0.0.1", "/a%20b?page=/c&user=d", "", "/a%20b?page=/c&user=d");
    check_mirrored("10.0.0.1", "", "/a?", "/a?");
    check_mirrored("10.0.0.1", "/a", "/b", "/a");
    check_mirrored("10.0.0.1", "", "", "");
    check_mirrored("10.0.0.1", "?", "", "?");
    check_mirrored("192.0.2.1", "/a", "/b", "");
    check_mirrored("", "/a", "/b", "");
}
