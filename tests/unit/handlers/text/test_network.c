#include "handlers/text/network.h"

#include <criterion/criterion.h>

#include "handlers/text/check.h"

static bool holds(const char *network, const char *address)
{
    struct network parsed;
    struct event_address a = {0};
    cr_assert_null(network_parse(slice_of(network), &parsed), "%s", network);
    cr_assert_null(event_parse_address(slice_of(address), &a), "%s", address);
    return network_holds(&parsed, &a);
}

Test(network, what_it_holds)
{
    static const struct {
        const char *network, *inside, *outside;
    } rows[] = {
        {"10.0.0.0/8", "10.255.255.255", "11.0.0.0"},
        {"10.1.2.3", "10.1.2.3", "10.1.2.2"},
        {"192.0.2.128/25", "192.0.2.255", "192.0.2.127"},
        {"192.0.2.77/30", "192.0.2.79", "192.0.2.80"},
        {"0.0.0.0/0", "255.1.2.3", "::1"},
        {"::/0", "2001:db8::1", "1.2.3.4"},
        {"fd00::/8", "fdff::1", "fe00::1"},
        {"2001:db8::/127", "2001:db8::1", "2001:db8::2"},
        {"::ffff:10.0.0.0/104", "10.9.9.9", "11.0.0.1"},
        {"10.0.0.0/8", "::ffff:10.9.9.9", "::ffff:11.9.9.9"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cr_expect(holds(rows[i].network, rows[i].inside), "%s %s", rows[i].network, rows[i].inside);
        cr_expect_not(
            holds(rows[i].network, rows[i].outside), "%s %s", rows[i].network, rows[i].outside);
    }
}

Test(network, an_address_that_is_none_is_nowhere)
{
    struct network all;
    struct event_address none = {0};
    cr_assert_null(network_parse(SLICE("0.0.0.0/0"), &all));
    cr_expect_not(network_holds(&all, &none));
}

Test(network, what_is_none)
{
    static const char *const rows[] = {"", "/8", "10.0.0.0/", "10.0.0.0/33", "::/129", "10/8", "x",
        "10.0.0.0/-1", "10.0.0.0/8 ", "::ffff:10.0.0.0/95", "10.0.0.0/4294967304",
        "10.0.0.0/99999999999999999999"};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct network network = {.bits = 77};
        cr_expect_not_null(network_parse(slice_of(rows[i]), &network), "%s", rows[i]);
        cr_expect_eq(network.bits, 77);
    }
}
