#include "storage/pages/table.h"

#include <criterion/criterion.h>

TestSuite(page_table, .timeout = 60);

Test(page_table, gives_back_what_was_put)
{
    static char longest[UINT16_MAX];
    const uint8_t bits[][4] = {{0x01, 0, 0, 0}, {0xff, 0xff, 0xff, 0x07}, {0, 0x10, 0, 0x02}};
    memset(longest, 'x', sizeof(longest));
    const struct page_entry entries[] = {{SLICE("/"), 1, bits[0]},
        {{longest, sizeof(longest)}, UINT64_MAX, bits[1]}, {SLICE("/a:b\n"), 300, bits[2]}};
    for (size_t n_buckets = 25; n_buckets <= 32; n_buckets += 7) {
        struct buffer table;
        struct page_entry entry;
        size_t at = 0;
        buffer_init(&table);
        for (size_t i = 0; i < 3; i++) {
            page_table_put(&table, &entries[i], n_buckets);
        }
        cr_assert_not(table.failed);
        for (size_t i = 0; i < 3; i++) {
            cr_assert(page_table_next((struct slice){table.p, table.n}, n_buckets, &at, &entry));
            cr_expect(slice_equal(entry.page, entries[i].page));
            cr_expect_eq(entry.pv, entries[i].pv);
            cr_expect_eq(memcmp(entry.present, bits[i], page_bits_size(n_buckets)), 0);
        }
        cr_expect_not(page_table_next((struct slice){table.p, table.n}, n_buckets, &at, &entry));
        cr_expect_eq(at, table.n);
        buffer_release(&table);
    }
}

Test(page_table, of_no_pages_is_of_no_bytes)
{
    struct page_entry entry;
    size_t at = 0;
    cr_expect_not(page_table_next(SLICE(""), 60, &at, &entry));
    cr_expect_eq(page_bits_size(0), 0);
    cr_expect_eq(page_bits_size(8), 1);
    cr_expect_eq(page_bits_size(9), 2);
}
