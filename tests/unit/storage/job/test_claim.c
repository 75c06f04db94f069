#include "storage/job/claim.h"

#include <criterion/criterion.h>

#include "storage/schema/key.h"

TestSuite(claim, .timeout = 60);

static bool same(struct claim_digest a, struct claim_digest b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

Test(claim, a_key_belongs_to_its_owner)
{
    struct claim_digest k = claim_key(SLICE("a"), SLICE("bc"));
    cr_expect(same(k, claim_key(SLICE("a"), SLICE("bc"))));
    cr_expect_not(same(k, claim_key(SLICE("ab"), SLICE("c"))));
    cr_expect_not(same(k, claim_key(SLICE(""), SLICE("abc"))));
    cr_expect_not(same(k, claim_key(SLICE("abc"), SLICE(""))));
    cr_expect(
        same(claim_key((struct slice){NULL, 0}, SLICE("k")), claim_key(SLICE(""), SLICE("k"))));
}

/* They are compared with what another version of the program has stored. */
Test(claim, digests_do_not_change)
{
    struct claim_digest k = claim_key(SLICE("token"), SLICE("key"));
    struct claim_digest b = claim_body(3, SLICE("{\"page\":\"/\"}"));
    char text[CLAIM_TEXT];
    claim_print(&k, text);
    cr_expect_str_eq(text, "ba080320d33ff664e834c6dc1842cb46");
    claim_print(&b, text);
    cr_expect_str_eq(text, "1687b07156b463e6d6049a7c875f96d6");
}

Test(claim, a_body_is_another_one_if_it_is_read_otherwise)
{
    struct claim_digest b = claim_body(0, SLICE("[]"));
    cr_expect(same(b, claim_body(0, SLICE("[]"))));
    cr_expect_not(same(b, claim_body(1, SLICE("[]"))));
    cr_expect_not(same(b, claim_body(0, SLICE("[ ]"))));
    cr_expect_not(same(b, claim_body(0, (struct slice){NULL, 0})));
}

Test(claim, keys_in_redis)
{
    struct claim_digest digest;
    struct key key;
    memset(&digest, 0x0f, sizeof(digest));
    key_claim(&key, "12", &digest);
    cr_expect(slice_equal(
        (struct slice){key.p, key.n}, SLICE("t:{12}:claim:0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f")));
    key_unit(&key, "12", &digest);
    cr_expect(slice_equal(
        (struct slice){key.p, key.n}, SLICE("t:{12}:once:claim:0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f")));
}
