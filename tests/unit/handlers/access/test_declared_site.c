#include "handlers/access/declared_site.h"

#include <criterion/criterion.h>

Test(declared_site, found_by_its_whole_name)
{
    static const struct declared_site rows[] = {
        {.name = {"a", 1}}, {.name = {"ab", 2}}, {.name = {"b", 1}}};
    const struct declared_sites sites = {.at = rows, .n = 3}, none = {.at = rows, .n = 0};
    for (size_t i = 0; i < 3; i++) {
        cr_expect_eq(declared_site_find(&sites, rows[i].name), &rows[i]);
        cr_expect_null(declared_site_find(&none, rows[i].name));
    }
    cr_expect_null(declared_site_find(&sites, SLICE("")));
    cr_expect_null(declared_site_find(&sites, SLICE("abc")));
}

Test(declared_site, an_origin_is_scheme_host_and_port)
{
    struct slice own[] = {SLICE("https://a.example"), SLICE("http://b.example:8080"),
        SLICE("http://[::1]"), SLICE("https://c.example:443")};
    const struct declared_site site = {.origins = own, .n_origins = 4};
    static const struct {
        const char *origin;
        bool has;
    } rows[] = {
        {"https://a.example", true},
        {"https://a.example:443/x", true},
        {"https://A.example?x", true},
        {"HTTPS://A.EXAMPLE:443", true},
        {"http://a.example", false},
        {"https://a.example:80", false},
        {"https://a.example.", false},
        {"https://aa.example", false},
        {"https://a.example@x", false},
        {"http://b.example:8080#", true},
        {"http://b.example", false},
        {"http://[::1]:80/", true},
        {"https://c.example", true},
        {"https://", false},
        {"://a.example", false},
        {"null", false},
        {"", false},
        {"https:", false},
        {"/https://a.example", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cr_expect_eq(declared_site_has_origin(&site, slice_of(rows[i].origin)), rows[i].has, "%s",
            rows[i].origin);
    }
}
