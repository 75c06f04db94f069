#include "storage/fold/merge_seen.h"

#include <criterion/criterion.h>

#include "storage/seen/layout.h"
#include "tests/lib/resp_words.h"

TestSuite(merge_seen, .timeout = 60);

#define NOW_S  INT64_C(1795187834) /* 2026-11-20 15:17:14 UTC */
#define KEEP_S (92 * INT64_C(86400))

static struct row row_of(const char *site, uint64_t page, uint8_t user)
{
    struct row row = {.site = slice_of(site),
        .site_hash = page_hash(slice_of(site), SLICE("")),
        .page_hash = page,
        .has_visitor = true};
    row.visitor.bytes[0] = user;
    return row;
}

/* A log a site, its pairs in order; a pair that repeats at once is there once. */
Test(merge_seen, logs_of_two_sites)
{
    const struct row rows[] = {row_of("shop", 1, 1), row_of("shop", 1, 1), row_of("blog", 1, 1),
        row_of("shop", 1, 1), row_of("shop", 2, 1), row_of("shop", 1, 1), row_of("shop", 1, 2)};
    static const size_t of_shop[] = {0, 4, 5, 6};
    struct merge_seen *merge = merge_seen_new();
    struct buffer keys, args;
    struct resp_words key_words, arg_words;
    size_t n_keys = 0, n_args = 0;
    buffer_init(&keys);
    buffer_init(&args);
    cr_assert(merge != NULL);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cr_assert(merge_seen_add(merge, &rows[i]));
    }
    merge_seen_write(merge, "7", NOW_S, KEEP_S, &keys, &n_keys, &args, &n_args);
    cr_assert(resp_words_read(&keys, &key_words) && resp_words_read(&args, &arg_words));
    cr_expect_eq(key_words.n, n_keys);
    cr_expect_eq(arg_words.n, n_args);
    cr_assert_eq(resp_words_number(&arg_words), 2);
    cr_expect(slice_equal(resp_words_take(&key_words), SLICE("t:{7}:seen:shop:M202611010000:log")));
    cr_expect_gt(resp_words_number(&arg_words), NOW_S * 1000);
    struct slice log = resp_words_take(&arg_words);
    cr_assert_eq(log.n, sizeof(of_shop) / sizeof(of_shop[0]) * 8);
    for (size_t i = 0; i < log.n / 8; i++) {
        const struct row *row = &rows[of_shop[i]];
        uint64_t expected = seen_fingerprint(&row->visitor, row->page_hash), found;
        memcpy(&found, log.p + 8 * i, 8);
        cr_expect_eq(found, expected, "pair %zu", i);
    }
    cr_expect(slice_equal(resp_words_take(&key_words), SLICE("t:{7}:seen:blog:M202611010000:log")));
    (void)resp_words_number(&arg_words);
    cr_expect_eq(resp_words_take(&arg_words).n, 8u);
    cr_expect(resp_words_over(&key_words) && resp_words_over(&arg_words));
    resp_words_release(&key_words);
    resp_words_release(&arg_words);
    buffer_release(&keys);
    buffer_release(&args);
    merge_seen_free(merge);
}
