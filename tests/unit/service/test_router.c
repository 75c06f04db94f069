#include <criterion/criterion.h>

#include "service/router.h"

static const struct route routes[] = {
    {.method = HTTP_GET, .path = "/a"},
    {.method = HTTP_POST, .path = "/a"},
    {.method = HTTP_PUT, .path = "/b"},
    {.method = HTTP_DELETE, .path = "/b"},
    {.method = HTTP_GET, .path = "/"},
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
    };
    struct router router;
    cr_assert(router_init(&router, routes, N));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned methods = 0;
        enum router_method method = router_method(slice_of(rows[i].method));
        size_t index = router_find(&router, method, slice_of(rows[i].path), &methods);
        cr_expect_eq(index, rows[i].index, "row %zu: %zu", i, index);
        cr_expect_eq(methods, rows[i].methods, "row %zu: %x", i, methods);
    }
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
    cr_expect_eq(router_find(&router, ROUTER_GET, SLICE("/"), &methods), 0);
    cr_expect_eq(methods, 0);
    router_release(&router);
}
