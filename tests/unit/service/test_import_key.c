#include "service/client/import_key.h"

#include <criterion/criterion.h>

TestSuite(import_key, .timeout = 60);

Test(import_key, depends_on_content_place_and_all_before)
{
    struct import_chain none = {0};
    struct import_chain passed = {0};
    char key[IMPORT_KEY_TEXT];
    char other[IMPORT_KEY_TEXT];
    import_key(&none, 1, 2, SLICE("a\nb\n"), key);
    cr_expect_eq(strlen(key), 39);
    cr_expect_eq(strncmp(key, "import-", 7), 0);
    import_key(&none, 1, 2, SLICE("a\nb\n"), other);
    cr_expect_str_eq(key, other);
    import_key(&none, 1, 2, SLICE("a\nc\n"), other);
    cr_expect_str_neq(key, other);
    import_key(&none, 2, 2, SLICE("a\nb\n"), other);
    cr_expect_str_neq(key, other);
    import_key(&none, 1, 3, SLICE("a\nb\n"), other);
    cr_expect_str_neq(key, other);
    import_chain_add(&passed, 1, 2, SLICE("a\nb\n"));
    import_key(&passed, 1, 2, SLICE("a\nb\n"), other);
    cr_expect_str_neq(key, other);
}

Test(import_key, a_chain_is_what_was_passed)
{
    struct import_chain a = {0};
    struct import_chain b = {0};
    import_chain_add(&a, 1, 1, SLICE("x"));
    import_chain_add(&b, 1, 1, SLICE("x"));
    cr_expect_eq(memcmp(&a, &b, sizeof(a)), 0);
    import_chain_add(&a, 2, 2, SLICE("y"));
    import_chain_add(&b, 2, 3, SLICE("y"));
    cr_expect_neq(memcmp(&a, &b, sizeof(a)), 0);
}
