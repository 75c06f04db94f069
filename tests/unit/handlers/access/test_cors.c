#include "handlers/access/cors.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static const char *header(const struct http_response *response, const char *name)
{
    for (unsigned i = 0; i < response->n_headers; i++) {
        if (strcmp(response->headers[i].name, name) == 0) {
            return response->headers[i].text != NULL ? response->headers[i].text
                                                     : response->headers[i].value;
        }
    }
    return "none";
}

static struct http_response dress(const char *allowed, const char *origin, unsigned flags)
{
    struct slice origins[] = {slice_of(allowed), SLICE("https://b.example")};
    struct app app = {.origins = origins, .n_origins = allowed[0] != '\0' ? 2 : 0};
    struct http_response response = {0};
    cors_dress(&app, slice_of(origin), flags, &response);
    return response;
}

static void expect(struct http_response response, const char *origin, const char *credentials)
{
    cr_expect_str_eq(header(&response, "Vary"), "Origin");
    cr_expect_str_eq(header(&response, "Access-Control-Allow-Origin"), origin);
    cr_expect_str_eq(header(&response, "Access-Control-Allow-Credentials"), credentials);
    cr_expect_eq(strcmp(header(&response, "Access-Control-Expose-Headers"), "none") == 0,
        strcmp(origin, "none") == 0);
}

Test(cors, who_is_named)
{
    expect(dress("https://a.example", "https://a.example", 0), "https://a.example", "none");
    expect(dress("https://a.example", "https://b.example", 0), "https://b.example", "none");
    expect(dress("https://a.example", "https://a.example.evil", 0), "none", "none");
    expect(dress("https://a.example", "http://a.example", 0), "none", "none");
    expect(dress("https://a.example", "", 0), "none", "none");
    expect(dress("*", "https://c.example", 0), "*", "none");
    expect(dress("*", "", 0), "none", "none");
}

/* sendBeacon() asks with credentials, to which a star is no answer. */
Test(cors, page_views_may_come_with_credentials)
{
    expect(
        dress("https://a.example", "https://a.example", ROUTE_BEACON), "https://a.example", "true");
    expect(dress("*", "https://c.example", ROUTE_BEACON), "https://c.example", "true");
    expect(dress("https://a.example", "https://c.example", ROUTE_BEACON), "none", "none");
}

Test(cors, an_origin_that_is_too_long_to_be_named)
{
    char origin[200];
    memset(origin, 'a', sizeof(origin) - 1);
    memcpy(origin, "https://", 8);
    origin[sizeof(origin) - 1] = '\0';
    expect(dress("*", origin, ROUTE_BEACON), "*", "none");
}

Test(cors, off_says_nothing)
{
    struct http_response response = dress("", "https://a.example", 0);
    cr_expect_eq(response.n_headers, 0);
}

Test(cors, what_an_origin_is)
{
    static const char *const good[] = {"*", "https://a.example", "http://127.0.0.1:3000",
        "http://[::1]:80", "chrome-extension://abcdef"};
    static const char *const bad[] = {"", "a.example", "https://", "https://a.example/",
        "https://A.example", "https://a b", "://a", "https//a", "**", "null"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        cr_expect(cors_origin_valid(slice_of(good[i])), "%s", good[i]);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cr_expect_not(cors_origin_valid(slice_of(bad[i])), "%s", bad[i]);
    }
}
