/* Bits of many pages, of which Redis says the string. */
#include "storage/seen/bits.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "storage/seen/layout.h"
#include "storage/session/dispatcher.h"
#include "tests/lib/stand_in.h"

TestSuite(seen_bits, .timeout = 60);

#define PAGES 100 /* so many that the string is asked for whole */

static struct reply string_reply;
static unsigned n_asked;
static bool any_is_enough;

static void note_group(unsigned partition, enum dispatcher_kind kind)
{
    (void)partition;
    (void)kind;
    n_asked++;
}

static const struct reply *say_string(struct dispatcher *dispatcher)
{
    (void)dispatcher;
    return &string_reply;
}

static const struct seen_config config = {
    .on = true, .capacity = 1000, .error = 0.01, .keep_s = 2678400};

/* How many of @n_pages pages are found by string_reply. */
static size_t found_of(size_t n_pages)
{
    static const struct bucket month = {LEVEL_MONTH, 0, 2678400};
    struct seen_filter filter = {.params = seen_params(&config, 1), .n = 1};
    struct dispatcher *dispatcher = calloc(1, sizeof(*dispatcher));
    struct session session = {.dispatcher = dispatcher};
    struct wanted wanted = {.n = 0};
    struct pipeline pipe;
    bool lost = false;
    cr_assert_not_null(dispatcher);
    buffer_init(&dispatcher->bytes);
    stand_in.group = note_group;
    stand_in.dispatched = say_string;
    cr_assert(wanted_expect(&wanted, n_pages));
    for (uint64_t i = 1; i <= n_pages; i++) {
        wanted_add(&wanted, i * UINT64_C(0x9e3779b97f4a7c15));
    }
    const struct seen_bits bits = {.tag = "7",
        .site = {"s", 1},
        .months = &month,
        .filters = &filter,
        .n_months = 1,
        .any = any_is_enough};
    pipeline_init(&pipe, &session, INT64_MAX);
    cr_assert(seen_bits_find(&bits, &pipe, &wanted));
    cr_expect_eq(pipeline_end(&pipe, &lost), STORAGE_OK);
    size_t found = wanted.n_found;
    wanted_release(&wanted);
    buffer_release(&dispatcher->bytes);
    free(dispatcher);
    return found;
}

/* Pages that are found where Redis has @n bytes of @string. */
static size_t found_in(const char *string, size_t n)
{
    string_reply = (struct reply){.type = REPLY_TEXT, .text = {string, n}};
    return found_of(PAGES);
}

Test(seen_bits, a_string_of_redis_may_be_shorter_than_its_layer)
{
    static char ones[1 << 17];
    memset(ones, 0xff, sizeof(ones));
    cr_expect_eq(found_in(ones, sizeof(ones)), (size_t)PAGES);
    cr_expect_eq(n_asked, 1u, "the string, and nothing else");
    cr_expect_eq(found_in(ones, 16), 0u, "what lies behind it is not in it");
    cr_expect_eq(found_in(ones, 0), 0u);
}

/* A set may have more pages than are looked at together. */
Test(seen_bits, where_one_page_is_enough_the_others_are_not_read)
{
    static char ones[1 << 17];
    memset(ones, 0xff, sizeof(ones));
    string_reply = (struct reply){.type = REPLY_TEXT, .text = {ones, sizeof(ones)}};
    cr_expect_eq(found_of(5000), 5000u);
    cr_expect_eq(n_asked, 2u);
    any_is_enough = true;
    n_asked = 0;
    cr_expect_gt(found_of(5000), 0u);
    cr_expect_eq(n_asked, 1u);
}

/* Of few pages the bits are asked for one by one. */
Test(seen_bits, a_page_with_one_bit_unset_is_not_found)
{
    struct reply bits[3 * BLOOM_HASHES_MAX];
    const struct bloom_params params = seen_params(&config, 1);
    size_t n = 3 * bloom_layer(&params, 0).hashes;
    for (size_t i = 0; i < n; i++) {
        bits[i] = (struct reply){.type = REPLY_INTEGER, .integer = 1};
    }
    string_reply = (struct reply){.type = REPLY_ARRAY, .items = bits, .n = n};
    cr_expect_eq(found_of(3), 3u);
    for (size_t i = 0; i < n; i++) {
        bits[i].integer = 0;
        cr_expect_eq(found_of(3), 2u, "bit %zu", i);
        bits[i].integer = 1;
    }
}
