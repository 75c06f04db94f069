#include "storage/deletion/found.h"

#include "storage/schema/key.h"

#include <criterion/criterion.h>
#include <stdio.h>

/* Which keys belong to what is deleted, and which only look so. */
TestSuite(found, .timeout = 60);

static struct partitions partitions;

static void setup(void)
{
    partitions_make(4, &partitions);
}

/* @text stands behind the tag of partition 2. */
static enum found_kind judge(const struct deletion_target *target, const char *text)
{
    char key[200];
    unsigned partition = PARTITIONS_MAX;
    int n = snprintf(key, sizeof(key), "t:{%s}:%s", partitions.tag[2], text);
    enum found_kind kind =
        found_judge(&partitions, target, (struct slice){key, (size_t)n}, &partition);
    cr_expect(kind == FOUND_NOTHING || partition == 2);
    return kind;
}

Test(found, keys_of_a_site, .init = setup)
{
    const struct deletion_target target = {.site = SLICE("blog")};
    static const char *const its[] = {"uv:blog:m202603101200:/a",
        "uv:blog:m202603101200:", "ip:blog:d202603100000:x:y", "pv:blog:M202603010000",
        "vv:blog:h202603101200", "visit:blog:123", "uid:blog", "ids:blog:0",
        "act:blog:buy:20260310", "sets:blog", "seen:blog:M202603010000:log", "bf:blog:f",
        "bfs:blog:f", "bfl:blog:f:1:0.0", "places:blog:h202603101200"};
    static const char *const others[] = {"uv:blo:m202603101200:/a", "uv:blog2:m202603101200:/a",
        "uv:other:m202603101200::blog:", "rl:funnel:blog:k", "state", "sites", "open", "log:blog",
        "key:blog", "first:blog", "uid:other", "rl:ingest:site:blog"};
    for (size_t i = 0; i < sizeof(its) / sizeof(its[0]); i++) {
        cr_expect_eq(judge(&target, its[i]), FOUND_KEY, "%s", its[i]);
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        cr_expect_eq(judge(&target, others[i]), FOUND_NOTHING, "%s", others[i]);
    }
}

Test(found, keys_of_a_page, .init = setup)
{
    const struct deletion_target page = {.site = SLICE("blog"), .page = SLICE("/a")};
    const struct deletion_target prefix = {SLICE("blog"), SLICE("/a"), true};
    static const struct {
        const char *key;
        enum found_kind of_page, of_prefix;
    } cases[] = {{"uv:blog:m202603101200:/a", FOUND_KEY, FOUND_KEY},
        {"ip:blog:M202603010000:/a:b", FOUND_NOTHING, FOUND_KEY},
        {"uv:blog:m202603101200:/", FOUND_NOTHING, FOUND_NOTHING},
        {"uv:blog:m202603101200:", FOUND_NOTHING, FOUND_NOTHING},
        {"uv:blog:m20260310120:/a", FOUND_NOTHING, FOUND_NOTHING},
        {"pv:blog:m202603101200", FOUND_HASH, FOUND_HASH},
        {"vv:blog:h202603101200", FOUND_ZSET, FOUND_ZSET},
        {"uid:blog", FOUND_NOTHING, FOUND_NOTHING},
        {"act:blog:/a:20260310", FOUND_NOTHING, FOUND_NOTHING},
        {"pv:other:m202603101200", FOUND_NOTHING, FOUND_NOTHING}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cr_expect_eq(judge(&page, cases[i].key), cases[i].of_page, "%s", cases[i].key);
        cr_expect_eq(judge(&prefix, cases[i].key), cases[i].of_prefix, "%s", cases[i].key);
    }
}

Test(found, foreign_keys, .init = setup)
{
    const struct deletion_target target = {.site = SLICE("blog")};
    static const char *const keys[] = {"", "t", "t:", "t:{", "t:{}:uid:blog", "t:{0:uid:blog",
        "t:{no}:uid:blog", "x:{0}:uid:blog", "t:{0}"};
    unsigned partition;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        cr_expect_eq(found_judge(&partitions, &target, slice_of(keys[i]), &partition),
            FOUND_NOTHING, "%s", keys[i]);
    }
}

Test(found, patterns)
{
    const struct deletion_target target = {.site = SLICE("blog")};
    struct buffer out;
    buffer_init(&out);
    key_site_pattern(&out, NULL, target.site);
    buffer_text(&out, " ");
    key_site_pattern(&out, "7", target.site);
    buffer_text(&out, " ");
    found_prefix_pattern(&out, SLICE("/a*?[b]^\\c"));
    cr_expect(slice_equal((struct slice){out.p, out.n},
        SLICE("t:{*}:*:blog* t:{7}:*:blog* /a\\*\\?\\[b\\]\\^\\\\c*")));
    buffer_release(&out);
}
