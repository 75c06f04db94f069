#include <criterion/criterion.h>

#include "service/http/router.h"

static const struct route routes[] = {
    {.method = HTTP_GET, .path = "/a"},
    {.method = HTTP_POST, .path = "/a"},
    {.method = HTTP_PUT, .path = "/b"},
    {.method = HTTP_DELETE, .path = "/b"},
    {.method = HTTP_GET, .path = "/"},
    {.method = HTTP_GET, .path = "/f/{name}"},
    {.method = HTTP_POST, .path = "/f/{name}/add"},
    {.method = HTTP_GET, .path = "/s", .flags = ROUTE_SLASH},
    {.method = HTTP_GET, .path = "/t/{name}", .flags = ROUTE_SLASH},
};
#define N (sizeof(routes) / sizeof(routes[0]))

/* Success scenarios */

Test(router, finds_by_method_and_exact_path)
{
    static const struct {
        const char *method, *path;
        size_t index;
        unsigned methods;
    } rows[] = {
        {"GET", "/a", 0, 0},
        {"HEAD", "/a", 0, 0},
        {"POST", "/a", 1, 0},
        {"PUT", "/b", 2, 0},
        {"DELETE", "/b", 3, 0},
        {"GET", "/", 4, 0},
        {"PUT", "/a", N, 1u << HTTP_GET | 1u << HTTP_POST},
        {"OPTIONS", "/a", N, 1u << HTTP_GET | 1u << HTTP_POST},
        {"BREW", "/a", N, 1u << HTTP_GET | 1u << HTTP_POST},
        {"HEAD", "/b", N, 1u << HTTP_PUT | 1u << HTTP_DELETE},
        {"GET", "/A", N, 0},
        {"GET", "/a/", N, 0},
        {"GET", "", N, 0},
        {"GET", "/%61", N, 0},
        {"GET", "/f/x", 5, 0},
        {"GET", "/f/add", 5, 0},
        {"POST", "/f/x/add", 6, 0},
        {"GET", "/f/", N, 0},
        {"GET", "/f/x/", N, 0},
        {"GET", "/f/x/y", N, 0},
        {"POST", "/f//add", N, 0},
        {"POST", "/f/x/y/add", N, 0},
        {"POST", "/f/x", N, 1u << HTTP_GET},
        {"GET", "/f/x/add", N, 1u << HTTP_POST},
        {"GET", "/s", 7, 0},
        {"HEAD", "/s/", 7, 0},
        {"GET", "/s//", N, 0},
        {"POST", "/s/", N, 1u << HTTP_GET},
        {"GET", "/t/x/", 8, 0},
        {"GET", "/t/x", 8, 0},
        {"GET", "/t//", N, 0},
    };
    struct slice segment;
    struct router router;
    cr_assert(router_init(&router, routes, N));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned methods = 0;
        enum router_method method = router_method(slice_of(rows[i].method));
        size_t index = router_find(&router, method, slice_of(rows[i].path), &segment, &methods);
        cr_expect_eq(index, rows[i].index, "row %zu: %zu", i, index);
        cr_expect_eq(methods, rows[i].methods, "row %zu: %x", i, methods);
    }
    router_release(&router);
}

Test(router, gives_what_stands_for_the_braces)
{
    struct router router;
    struct slice segment;
    unsigned methods = 0;
    cr_assert(router_init(&router, routes, N));
    cr_assert_eq(router_find(&router, ROUTER_POST, SLICE("/f/a%2Fb+/add"), &segment, &methods), 6);
    cr_expect(slice_equal(segment, SLICE("a%2Fb+")));
    cr_assert_eq(router_find(&router, ROUTER_GET, SLICE("/a"), &segment, &methods), 0);
    cr_expect_eq(segment.n, 0);
    router_release(&router);
}

Test(router, methods_are_compared_with_case)
{
    cr_expect_eq(router_method(SLICE("GET")), ROUTER_GET);
    cr_expect_eq(router_method(SLICE("get")), ROUTER_OTHER);
    cr_expect_eq(router_method(SLICE("GETS")), ROUTER_OTHER);
    cr_expect_eq(router_method(SLICE("")), ROUTER_OTHER);
    cr_expect_eq(router_method(SLICE("PATCH")), ROUTER_OTHER);
}

Test(router, allow)
{
    char text[ROUTER_ALLOW_MAX];
    router_allow(1u << HTTP_GET, text);
    cr_expect_str_eq(text, "GET, HEAD");
    router_allow(1u << HTTP_POST | 1u << HTTP_DELETE, text);
    cr_expect_str_eq(text, "POST, DELETE");
    router_allow(1u << HTTP_GET | 1u << HTTP_POST | 1u << HTTP_PUT | 1u << HTTP_DELETE, text);
    cr_expect_str_eq(text, "GET, HEAD, POST, PUT, DELETE");
}

/* Failure scenarios */

Test(router, without_routes_nothing_is_found)
{
    struct router router;
    unsigned methods = 7;
    cr_assert(router_init(&router, NULL, 0));
    struct slice segment;
    cr_expect_eq(router_find(&router, ROUTER_GET, SLICE("/"), &segment, &methods), 0);
    cr_expect_eq(methods, 0);
    router_release(&router);
}
