/* Bits of many pages, of which Redis says the string. */
#include "storage/seen/bits.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "storage/core/dispatcher.h"
#include "storage/seen/layout.h"
#include "tests/lib/stand_in.h"

TestSuite(seen_bits, .timeout = 60);

#define PAGES 100 /* so many that the string is asked for whole */

static struct reply string_reply;
static unsigned n_asked;

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

/* Pages that are found where Redis has @n bytes of @string. */
static size_t found_in(const char *string, size_t n)
{
    static const struct seen_config config = {
        .on = true, .capacity = 1000, .error = 0.01, .keep_s = 2678400};
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
    string_reply = (struct reply){.type = REPLY_TEXT, .text = {string, n}};
    cr_assert(wanted_expect(&wanted, PAGES));
    for (uint64_t i = 1; i <= PAGES; i++) {
        wanted_add(&wanted, i * UINT64_C(0x9e3779b97f4a7c15));
    }
    const struct seen_bits bits = {
        .tag = "7", .site = {"s", 1}, .months = &month, .filters = &filter, .n_months = 1};
    pipeline_init(&pipe, &session, INT64_MAX);
    cr_assert(seen_bits_find(&bits, &pipe, &wanted));
    cr_expect_eq(pipeline_end(&pipe, &lost), STORAGE_OK);
    size_t found = wanted.n_found;
    wanted_release(&wanted);
    buffer_release(&dispatcher->bytes);
    free(dispatcher);
    return found;
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
