/* A host's site. */
#include <criterion/criterion.h>

#include "service/client/import_lines.h"

Test(import_lines, the_site_of_a_host)
{
    static const struct {
        const char *host, *site; /* NULL: none */
    } rows[] = {
        {"example.org", "example.org"},
        {"WWW.Example.ORG", "www.example.org"},
        {"example.org:8080", "example.org"},
        {"example.org.", "example.org"},
        {"example.org.:443", "example.org"},
        {"192.0.2.1:80", "192.0.2.1"},
        {"localhost", "localhost"},
        {"", NULL},
        {":80", NULL},
        {".", NULL},
        {"_", NULL}, /* nginx's name of a server without one */
        {"-", NULL},
        {"a b", NULL},
        {"[2001:db8::1]:443", NULL},
        {"2001:db8::1", NULL},
        {"b\xc3\xbc"
         "cher.example",
            NULL},
        {"0123456789012345678901234567890123456789012345678901234567890123",
            "0123456789012345678901234567890123456789012345678901234567890123"},
        {"0123456789012345678901234567890123456789012345678901234567890123x", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char to[EVENT_SITE_MAX];
        struct slice site = {0};
        bool found = import_site_of_host(slice_of(rows[i].host), to, &site);
        cr_assert_eq(found, rows[i].site != NULL, "%s", rows[i].host);
        cr_expect(!found || slice_equal(site, slice_of(rows[i].site)), "%s", rows[i].host);
    }
}
