#include "storage/job/request_key.h"

#include <criterion/criterion.h>

#include "storage/schema/key.h"

TestSuite(request_key, .timeout = 60);

static bool same(struct key_digest a, struct key_digest b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

Test(request_key, a_key_belongs_to_its_owner)
{
    struct key_digest k = request_key_digest(SLICE("a"), SLICE("bc"));
    cr_expect(same(k, request_key_digest(SLICE("a"), SLICE("bc"))));
    cr_expect_not(same(k, request_key_digest(SLICE("ab"), SLICE("c"))));
    cr_expect_not(same(k, request_key_digest(SLICE(""), SLICE("abc"))));
    cr_expect_not(same(k, request_key_digest(SLICE("abc"), SLICE(""))));
    cr_expect(same(request_key_digest((struct slice){NULL, 0}, SLICE("k")),
        request_key_digest(SLICE(""), SLICE("k"))));
}

/* They are compared with what another version of the program has stored. */
Test(request_key, digests_do_not_change)
{
    struct key_digest k = request_key_digest(SLICE("token"), SLICE("key"));
    struct key_digest b = request_body_digest(3, SLICE("{\"page\":\"/\"}"));
    char text[KEY_DIGEST_TEXT];
    key_digest_print(&k, text);
    cr_expect_str_eq(text, "ba080320d33ff664e834c6dc1842cb46");
    key_digest_print(&b, text);
    cr_expect_str_eq(text, "1687b07156b463e6d6049a7c875f96d6");
    k = request_key_of_body(SLICE("token"), 3, SLICE("{\"page\":\"/\"}"));
    key_digest_print(&k, text);
    cr_expect_str_eq(text, "06dfe03b664adcacce2f153ea2168e29");
}

Test(request_key, a_body_is_another_one_if_it_is_read_otherwise)
{
    struct key_digest b = request_body_digest(0, SLICE("[]"));
    cr_expect(same(b, request_body_digest(0, SLICE("[]"))));
    cr_expect_not(same(b, request_body_digest(1, SLICE("[]"))));
    cr_expect_not(same(b, request_body_digest(0, SLICE("[ ]"))));
    cr_expect_not(same(b, request_body_digest(0, (struct slice){NULL, 0})));
}

Test(request_key, keys_in_redis)
{
    struct key_digest digest;
    struct key key;
    memset(&digest, 0x0f, sizeof(digest));
    key_record(&key, "12", &digest);
    cr_expect(slice_equal(
        (struct slice){key.p, key.n}, SLICE("t:{12}:key:0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f")));
}
