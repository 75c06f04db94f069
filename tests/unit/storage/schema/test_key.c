#include "storage/schema/key.h"

#include <criterion/criterion.h>
#include <inttypes.h>

#include "tests/lib/dice.h"

TestSuite(key, .timeout = 60);

#define AT_S INT64_C(1795187834) /* 2026-11-20 15:17:14 UTC */

static struct bucket at(enum level level)
{
    return bucket_at(zone_utc(), level, AT_S);
}

static struct slice text_of(const struct key *key)
{
    return (struct slice){key->p, key->n};
}

static void check(const struct key *key, const char *expected)
{
    cr_expect(slice_equal(text_of(key), slice_of(expected)), "%.*s, not %s", (int)key->n, key->p,
        expected);
}

/* ---- the schema ---- */

Test(key, buckets)
{
    static const struct {
        enum key_kind kind;
        enum level level;
        const char *page, *text;
    } cases[] = {
        {KEY_UV, LEVEL_MINUTE, "/a", "t:{7}:uv:shop:m202611201517:/a"},
        {KEY_UV, LEVEL_HOUR, "/a", "t:{7}:uv:shop:h202611201500:/a"},
        {KEY_UV, LEVEL_DAY, "/a", "t:{7}:uv:shop:d202611200000:/a"},
        {KEY_UV, LEVEL_MONTH, "/a", "t:{7}:uv:shop:M202611010000:/a"},
        {KEY_UV, LEVEL_DAY, "", "t:{7}:uv:shop:d202611200000:"},
        {KEY_IP, LEVEL_MINUTE, "/a:b{c}", "t:{7}:ip:shop:m202611201517:/a:b{c}"},
        {KEY_IP, LEVEL_MONTH, "", "t:{7}:ip:shop:M202611010000:"},
        {KEY_PV, LEVEL_HOUR, "/ignored", "t:{7}:pv:shop:h202611201500"},
        {KEY_VV, LEVEL_DAY, "/ignored", "t:{7}:vv:shop:d202611200000"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct key key;
        key_bucket(
            &key, "7", cases[i].kind, SLICE("shop"), at(cases[i].level), slice_of(cases[i].page));
        check(&key, cases[i].text);
    }
}

Test(key, first_and_last_times)
{
    struct key key;
    key_bucket(&key, "0", KEY_PV, SLICE("s"), bucket_at(zone_utc(), LEVEL_MINUTE, 0), SLICE(""));
    check(&key, "t:{0}:pv:s:m197001010000");
    key_bucket(&key, "0", KEY_PV, SLICE("s"),
        bucket_at(zone_utc(), LEVEL_MINUTE, INT64_C(253402300799)), SLICE(""));
    check(&key, "t:{0}:pv:s:m999912312359");
    key_bucket(&key, "0", KEY_PV, SLICE("s"), bucket_at(zone_utc(), LEVEL_DAY, INT64_C(1709164800)),
        SLICE(""));
    check(&key, "t:{0}:pv:s:d202402290000");
}

Test(key, others)
{
    struct key key;
    key_fixed(&key, "131", "state", SLICE(""));
    check(&key, "t:{131}:state");
    key_fixed(&key, "0", "meta", (struct slice){NULL, 0});
    check(&key, "t:{0}:meta");
    key_fixed(&key, "12", "log:", SLICE("00ff"));
    check(&key, "t:{12}:log:00ff");
    key_visit_prefix(&key, "12", SLICE("a.b-c_d"));
    check(&key, "t:{12}:visit:a.b-c_d:");
    key_open_member(&key, SLICE("shop"), at(LEVEL_HOUR));
    check(&key, "shop:h202611201500");
}

Test(key, filters)
{
    struct key key;
    key_filter(&key, "7", SLICE("shop"), SLICE("A.b-c_0"));
    check(&key, "t:{7}:bf:shop:A.b-c_0");
    key_filter_shard(&key, "7", SLICE("shop"), SLICE("f"));
    check(&key, "t:{7}:bfs:shop:f");
    key_filter_bits(&key, "7", SLICE("shop"), SLICE("f"), UINT64_C(1790000000123456), 3, 17);
    check(&key, "t:{7}:bfl:shop:f:1790000000123456:3.17");
    key_seen(&key, "7", SLICE("shop"), at(LEVEL_MONTH), "log");
    check(&key, "t:{7}:seen:shop:M202611010000:log");
    key_seen_bits(&key, "7", SLICE("shop"), at(LEVEL_MONTH), 31, 2);
    check(&key, "t:{7}:seen:shop:M202611010000:bits:31.2");
}

Test(key, the_longest_fits)
{
    char site[EVENT_SITE_MAX];
    char page[EVENT_PAGE_MAX];
    struct key key;
    memset(site, 's', sizeof(site));
    memset(page, 'p', sizeof(page));
    key_bucket(&key, "9999999", KEY_UV, (struct slice){site, sizeof(site)}, at(LEVEL_MINUTE),
        (struct slice){page, sizeof(page)});
    cr_expect_eq(key.n, strlen("t:{9999999}:uv::m202611201517:") + sizeof(site) + sizeof(page));
    cr_expect_eq(key.p[key.n - 1], 'p');
}

/* ---- nobody can forge another key ---- */

/* Names that look like pieces of keys. */
static struct slice random_text(struct dice *dice, bool is_site, char *text, size_t max)
{
    static const char *const pieces[] = {"m202611201517", "h202611201500", "uv", "ip", "pv",
        "visit", "open", "0", "a", ".", "-", "t", ":", "{", "}", "{0}",
        ":m202611201517:", "t:{0}:", "/"};
    size_t n_pieces = is_site ? 12 : sizeof(pieces) / sizeof(pieces[0]);
    size_t n = 0;
    for (int64_t left = dice_below(dice, 4) + (is_site ? 1 : 0); left > 0; left--) {
        const char *piece = pieces[dice_below(dice, (int64_t)n_pieces)];
        if (n + strlen(piece) <= max) {
            memcpy(text + n, piece, strlen(piece));
            n += strlen(piece);
        }
    }
    return (struct slice){text, n};
}

struct named {
    char site_text[EVENT_SITE_MAX], page_text[128];
    struct slice site, page;
    enum key_kind kind;
    struct bucket bucket;
    struct key key;
};

static void random_named(struct dice *dice, struct named *ret)
{
    static const int64_t times_s[] = {AT_S, AT_S + 60, AT_S - 3600, AT_S - 17 * 60 - 14};
    ret->site = random_text(dice, true, ret->site_text, sizeof(ret->site_text));
    ret->page = random_text(dice, false, ret->page_text, sizeof(ret->page_text));
    ret->kind = (enum key_kind)dice_below(dice, 4);
    if (ret->kind == KEY_PV || ret->kind == KEY_VV) {
        ret->page = (struct slice){NULL, 0};
    }
    ret->bucket =
        bucket_at(zone_utc(), (enum level)dice_below(dice, LEVELS), times_s[dice_below(dice, 4)]);
    key_bucket(&ret->key, "0", ret->kind, ret->site, ret->bucket, ret->page);
}

/* Two keys are the same only if all that they are made of is. */
Test(key, no_site_and_no_page_forges_another)
{
    uint64_t seed = dice_seed();
    struct dice dice = dice_make(seed);
    static struct named names[400];
    size_t n_equal = 0;
    for (size_t i = 0; i < 400; i++) {
        random_named(&dice, &names[i]);
    }
    for (size_t i = 0; i < 400; i++) {
        for (size_t j = 0; j < i; j++) {
            const struct named *a = &names[i];
            const struct named *b = &names[j];
            bool same_key = slice_equal(text_of(&a->key), text_of(&b->key));
            bool same = a->kind == b->kind && a->bucket.level == b->bucket.level &&
                        a->bucket.start_s == b->bucket.start_s && slice_equal(a->site, b->site) &&
                        slice_equal(a->page, b->page);
            n_equal += same_key ? 1 : 0;
            cr_assert_eq(same_key, same, "TALLYD_TEST_SEED=%" PRIu64 ": %.*s", seed, (int)a->key.n,
                a->key.p);
        }
    }
    cr_expect_gt(n_equal, 0u, "the names are too different to show anything");
}

/* Nor one of the fixed keys, nor another partition's. */
Test(key, no_bucket_reads_as_a_fixed_key)
{
    static const char *const fixed[] = {"t:{0}:state", "t:{0}:open", "t:{0}:sites", "t:{0}:meta",
        "t:{0}:log:", "t:{0}:heads", "t:{0}:key:", "t:{0}:pass", "t:{0}:visit:", "t:{0}:secret",
        "t:{0}:lock", "t:{0}:fence", "t:{0}:probe"};
    struct dice dice = dice_make(dice_seed());
    for (int i = 0; i < 2000; i++) {
        struct named named;
        random_named(&dice, &named);
        cr_assert_eq(memcmp(named.key.p, "t:{0}:", 6), 0);
        for (size_t f = 0; f < sizeof(fixed) / sizeof(fixed[0]); f++) {
            size_t n = strlen(fixed[f]);
            cr_assert(named.key.n < n || memcmp(named.key.p, fixed[f], n) != 0, "%.*s",
                (int)named.key.n, named.key.p);
        }
    }
}

Test(key, activity)
{
    struct key key;
    struct slice rest;
    key_user_index(&key, "12", SLICE("shop"));
    check(&key, "t:{12}:uid:shop");
    key_user_ids(&key, "12", SLICE("shop"));
    check(&key, "t:{12}:ids:shop:");
    key_activity(&key, "12", SLICE("shop"), SLICE("plan:pro"), 20777);
    check(&key, "t:{12}:act:shop:plan:pro:20261120");
    key_activity_prefix(&key, "12");
    check(&key, "t:{12}:act:");
    cr_assert(key_member_of(SLICE("shop:plan:pro:20261120"), SLICE("shop"), &rest));
    cr_expect(slice_equal(rest, SLICE("plan:pro:20261120")));
    cr_expect(!key_member_of(SLICE("shop-b:active:20261120"), SLICE("shop"), &rest));
    cr_expect(!key_member_of(SLICE("sho:active:20261120"), SLICE("shop"), &rest));
    cr_expect(!key_member_of(SLICE("shop"), SLICE("shop"), &rest));
}

/* ---- members of the open set ---- */

Test(key, open_members_come_back)
{
    uint64_t seed = dice_seed();
    struct dice dice = dice_make(seed);
    for (int i = 0; i < 5000; i++) {
        char site_text[EVENT_SITE_MAX];
        struct slice site = random_text(&dice, true, site_text, sizeof(site_text));
        int64_t at_s =
            dice_below(&dice, dice_chance(&dice, 500) ? 2 * AT_S : INT64_C(253402300800));
        struct bucket bucket = bucket_at(zone_utc(), (enum level)dice_below(&dice, LEVELS), at_s);
        struct slice site_back;
        struct bucket back;
        struct key member;
        key_open_member(&member, site, bucket);
        cr_assert(key_open_parse(text_of(&member), zone_utc(), &site_back, &back),
            "TALLYD_TEST_SEED=%" PRIu64 ": %.*s", seed, (int)member.n, member.p);
        cr_assert(slice_equal(site_back, site) && back.level == bucket.level &&
                      back.start_s == bucket.start_s && back.end_s == bucket.end_s,
            "TALLYD_TEST_SEED=%" PRIu64 ": %.*s", seed, (int)member.n, member.p);
    }
}

Test(key, what_is_no_open_member)
{
    static const char *const texts[] = {"", ":", "shop", ":h202611201500", "h202611201500",
        "shop:h20261120150", "shop:h2026112015000", "shoph202611201500", "shop:x202611201500",
        "shop:H202611201500", "shop:h2026112015 0", "shop:h20261120150a", "shop:h-02611201500",
        "shop:h202600201500", "shop:h202613201500", "shop:h202611001500", "shop:h202611321500",
        "shop:h202611202400", "shop:h202611201560", "shop:h202611201501", /* no start of an hour */
        "shop:d202611201500", "shop:M202611020000", "shop:M202611010001", "shop:h202611201500 "};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct slice site;
        struct bucket bucket;
        cr_expect_not(
            key_open_parse(slice_of(texts[i]), zone_utc(), &site, &bucket), "%s", texts[i]);
    }
}

/* A date that does not exist is no bucket. */
Test(key, open_parse_refuses_dates_that_do_not_exist)
{
    struct slice site;
    struct bucket bucket;

    cr_assert(key_open_parse(SLICE("shop:d202602280000"), zone_utc(), &site, &bucket));
    cr_assert_not(key_open_parse(SLICE("shop:d202602300000"), zone_utc(), &site, &bucket));
    cr_assert_not(key_open_parse(SLICE("shop:M202613010000"), zone_utc(), &site, &bucket));
}
