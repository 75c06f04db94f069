/* A body that memory was short for: jansson drops the byte that has no room, and calls it JSON. */
#include "handlers/reply/json_body.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>

#include "handlers/reply/json_memory.h"

TestSuite(json_body, .timeout = 60);

static json_malloc_t allocate;
static json_free_t release;
static unsigned left; /* allocations that succeed */

/* What is refused is refused by the allocator behind, which notes it. */
static void *allocate_until(size_t n)
{
    return left-- == 0 ? allocate(PTRDIFF_MAX) : allocate(n);
}

static json_t *read_body(struct http_exchange *exchange, unsigned n_allocations)
{
    /* jansson 2.14 loses its way where a text has to grow for the closing quote: no text has to. */
    static const struct slice body = SLICE("{\"items\":[\"yyyyyyyyyyyyyyyyyyyy\","
                                           "\"zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz\"]}");
    *exchange = (struct http_exchange){.request = {.body = body}};
    json_memory_begin(false);
    left = n_allocations;
    json_t *root = json_body_read(exchange, 0);
    left = UINT32_MAX;
    return root;
}

Test(json_body, what_lacks_a_byte_is_not_taken)
{
    static struct http_exchange exchange;
    json_memory_watch();
    json_get_alloc_funcs(&allocate, &release);
    json_set_alloc_funcs(allocate_until, release);
    for (unsigned n = 0;; n++) {
        json_t *root = read_body(&exchange, n);
        if (root != NULL) {
            cr_expect_not(json_memory_failed(), "what was read with allocation %u refused", n);
            const json_t *items = json_object_get(root, "items");
            cr_expect_eq(json_string_length(json_array_get(items, 0)), 20);
            cr_expect_eq(json_string_length(json_array_get(items, 1)), 40);
            cr_expect_gt(n, 8, "%u", n);
            json_decref(root);
            break;
        }
        cr_expect_eq(exchange.response.status, 503, "%u: %d", n, exchange.response.status);
        free(exchange.response.body);
    }
}
