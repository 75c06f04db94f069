#include "service/client/import_key.h"

#include <criterion/criterion.h>

TestSuite(import_key, .timeout = 60);

Test(import_key, depends_on_the_first_event_its_place_and_all_before)
{
    struct import_chain none = {0};
    struct import_chain passed = {0};
    char key[IMPORT_KEY_TEXT];
    char other[IMPORT_KEY_TEXT];
    import_key(&none, 1, SLICE("a\n"), 0, key);
    cr_expect_eq(strlen(key), 39);
    cr_expect_eq(strncmp(key, "import-", 7), 0);
    import_key(&none, 1, SLICE("a\n"), 0, other);
    cr_expect_str_eq(key, other);
    import_key(&none, 1, SLICE("b\n"), 0, other);
    cr_expect_str_neq(key, other);
    import_key(&none, 2, SLICE("a\n"), 0, other);
    cr_expect_str_neq(key, other);
    import_key(&none, 1, SLICE("a\n"), 1, other);
    cr_expect_str_neq(key, other);
    import_chain_add(&none, 1, SLICE("a\n"), &passed);
    import_key(&passed, 1, SLICE("a\n"), 0, other);
    cr_expect_str_neq(key, other);
}

Test(import_key, a_chain_is_what_was_passed)
{
    struct import_chain a = {0};
    struct import_chain b = {0};
    import_chain_add(&a, 1, SLICE("x"), &a);
    import_chain_add(&b, 1, SLICE("x"), &b);
    cr_expect_eq(memcmp(&a, &b, sizeof(a)), 0);
    import_chain_add(&a, 2, SLICE("y"), &a);
    import_chain_add(&b, 3, SLICE("y"), &b);
    cr_expect_neq(memcmp(&a, &b, sizeof(a)), 0);
}

Test(import_key, a_piece_is_a_file_and_its_bounds)
{
    struct import_file_id file = {{1}}, other_file = {{2}};
    char key[IMPORT_KEY_TEXT], other[IMPORT_KEY_TEXT];
    import_piece_key(&file, 0, 100, 0, key);
    cr_expect_eq(strlen(key), 39);
    import_piece_key(&file, 0, 100, 0, other);
    cr_expect_str_eq(key, other);
    import_piece_key(&file, 0, 101, 0, other);
    cr_expect_str_neq(key, other);
    import_piece_key(&file, 1, 100, 0, other);
    cr_expect_str_neq(key, other);
    import_piece_key(&other_file, 0, 100, 0, other);
    cr_expect_str_neq(key, other);
    import_piece_key(&file, 0, 100, 1, other);
    cr_expect_str_neq(key, other);
}
