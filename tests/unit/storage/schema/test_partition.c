#include "storage/schema/partition.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "storage/schema/key.h"
#include "tests/lib/dice.h"

TestSuite(partition, .timeout = 60);

#define SLOTS 16384u

/* CRC16-XMODEM modulo 16384 of the key, or of what stands between its first '{' and the next '}'.
 * Source: Redis Cluster specification. */
static unsigned cluster_slot(struct slice key)
{
    const char *open = key.n == 0 ? NULL : memchr(key.p, '{', key.n);
    size_t rest = open == NULL ? 0 : key.n - (size_t)(open + 1 - key.p);
    const char *close = rest == 0 ? NULL : memchr(open + 1, '}', rest);
    unsigned crc = 0;
    if (close != NULL && close != open + 1) {
        key = (struct slice){open + 1, (size_t)(close - open - 1)};
    }
    for (size_t i = 0; i < key.n; i++) {
        crc ^= (unsigned)(unsigned char)key.p[i] << 8;
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc << 1 ^ ((crc & 0x8000) != 0 ? 0x1021 : 0)) & 0xffff;
        }
    }
    return crc % SLOTS;
}

/* ---- slots: vectors by CLUSTER KEYSLOT of Redis 7 ---- */

Test(partition, slots)
{
    static const struct {
        struct slice key;
        unsigned slot;
    } cases[] = {{SLICE("123456789"), 12739}, {SLICE("foo"), 12182}, {SLICE("bar"), 5061},
        {SLICE("hello"), 866}, {SLICE(""), 0}, {SLICE("{user1000}.following"), 3443},
        {SLICE("{user1000}.followers"), 3443}, {SLICE("foo{}{bar}"), 8363},
        {SLICE("foo{{bar}}zap"), 4015}, {SLICE("foo{bar}{zap}"), 5061}, {SLICE("{}x"), 10595},
        {SLICE("a{b"), 13340}, {SLICE("a}b{c}"), 7365}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cr_expect_eq(cluster_slot(cases[i].key), cases[i].slot, "%s: %u", cases[i].key.p,
            cluster_slot(cases[i].key));
    }
    cr_expect_eq(cluster_slot((struct slice){NULL, 0}), 0u);
    cr_expect_eq(cluster_slot((struct slice){"foobar", 3}), 12182u, "not behind its end");
    cr_expect_eq(cluster_slot((struct slice){"a{b}", 3}), 13340u, "nor for the brace");
}

/* ---- tags ---- */

/* All small numbers of partitions, and some large ones. */
static unsigned next_count(unsigned n)
{
    static const unsigned large[] = {100, 255, 256, 257, 512, 1000, 1023, 1024};
    size_t i = 0;
    while (n >= 64 && i < sizeof(large) / sizeof(large[0]) && large[i] <= n) {
        i++;
    }
    return n < 64 ? n + 1 : i < sizeof(large) / sizeof(large[0]) ? large[i] : PARTITIONS_MAX + 1;
}

Test(partition, tags_lie_in_equal_ranges_and_differ)
{
    for (unsigned n = 1; n <= PARTITIONS_MAX; n = next_count(n)) {
        struct partitions parts;
        partitions_make(n, &parts);
        cr_assert_eq(parts.n, n);
        for (unsigned p = 0; p < n; p++) {
            unsigned slot = cluster_slot(slice_of(parts.tag[p]));
            cr_expect(slot >= p * SLOTS / n && slot < (p + 1) * SLOTS / n, "%u of %u: slot %u", p,
                n, slot);
            cr_expect_eq(partition_slot(&parts, p), slot, "%u of %u", p, n);
            cr_expect_eq(strspn(parts.tag[p], "0123456789"), strlen(parts.tag[p]));
            cr_expect(strlen(parts.tag[p]) > 0);
            for (unsigned q = 0; q < p; q++) {
                cr_expect_str_neq(parts.tag[p], parts.tag[q], "%u and %u of %u", p, q, n);
            }
        }
    }
}

/* Part of the data's layout. */
Test(partition, tags_are_the_smallest_that_fit)
{
    static unsigned slot_of[10000]; /* of a number */
    for (unsigned number = 0; number < sizeof(slot_of) / sizeof(slot_of[0]); number++) {
        char text[12];
        snprintf(text, sizeof(text), "%u", number);
        slot_of[number] = cluster_slot(slice_of(text));
    }
    for (unsigned n = 1; n <= PARTITIONS_MAX; n = next_count(n)) {
        struct partitions parts;
        partitions_make(n, &parts);
        for (unsigned p = 0; p < n; p++) {
            for (unsigned smaller = 0; smaller < (unsigned)atoi(parts.tag[p]); smaller++) {
                cr_assert(
                    slot_of[smaller] < p * SLOTS / n || slot_of[smaller] >= (p + 1) * SLOTS / n,
                    "%u of %u", p, n);
            }
        }
    }
}

/* Every key of a partition, whatever stands in it, lies in the tag's slot. */
Test(partition, keys_lie_in_the_slot_of_their_tag)
{
    uint64_t seed = dice_seed();
    struct dice dice = dice_make(seed);
    struct partitions parts;
    partitions_make(PARTITIONS_MAX, &parts);
    for (int i = 0; i < 2000; i++) {
        static const char braces[] = "{}:0t";
        char page[20];
        struct key key;
        const char *tag = parts.tag[dice_below(&dice, PARTITIONS_MAX)];
        for (size_t c = 0; c < sizeof(page); c++) {
            page[c] = braces[dice_below(&dice, sizeof(braces) - 1)];
        }
        key_bucket(&key, tag, KEY_UV, SLICE("site"), bucket_at(zone_utc(), LEVEL_DAY, 0),
            (struct slice){page, sizeof(page)});
        cr_assert_eq(cluster_slot((struct slice){key.p, key.n}), cluster_slot(slice_of(tag)),
            "TALLYD_TEST_SEED=%" PRIu64 ": %.*s", seed, (int)key.n, key.p);
    }
}

/* ---- hashes ---- */

Test(partition, hashes_never_change)
{
    static const struct {
        struct slice site, page;
        uint64_t hash;
    } cases[] = {{SLICE("default"), SLICE(""), 0xf3e79ee99857e557},
        {SLICE("default"), SLICE("/"), 0x34a7fb923ba225cb},
        {SLICE("shop"), SLICE("/articles/1?a=b"), 0x49db795ddebf383a},
        {SLICE("shop"), SLICE("/"), 0x6e1cceadc21298be},
        {SLICE("a.b-c_d"), SLICE("/\xc3\xbc/{x}:"), 0x29168e283d8bda94},
        {SLICE("s"), SLICE(""), 0xbc8052da541822ce}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t hash = page_hash(cases[i].site, cases[i].page);
        cr_expect_eq(
            hash, cases[i].hash, "%s %s: 0x%016" PRIx64, cases[i].site.p, cases[i].page.p, hash);
    }
    cr_expect_eq(
        page_hash(SLICE("shop"), (struct slice){NULL, 0}), page_hash(SLICE("shop"), SLICE("")));
}

Test(partition, hash_of_the_longest)
{
    char site[64];
    char page[2048];
    memset(site, 's', sizeof(site));
    memset(page, 'p', sizeof(page));
    cr_expect_neq(page_hash((struct slice){site, 64}, (struct slice){page, 2048}),
        page_hash((struct slice){site, 64}, (struct slice){page, 2047}));
}

/* What a foreign hand wrote to Redis may be longer than any event's. */
Test(partition, hash_of_longer_texts)
{
    static char text[5000];
    memset(text, 'x', sizeof(text));
    struct slice site = {text, 65};
    struct slice page = {text, sizeof(text)};
    uint64_t hash = page_hash(site, page);
    text[sizeof(text) - 1] = 'y';
    cr_expect_neq(page_hash(site, page), hash);
    cr_expect_neq(page_hash(site, SLICE("/")), page_hash((struct slice){text, 66}, SLICE("/")));
    cr_expect_eq(page_hash(page, SLICE("")), page_hash(page, (struct slice){NULL, 0}));
}

Test(partition, hash_tells_site_from_page)
{
    cr_expect_neq(page_hash(SLICE("ab"), SLICE("c")), page_hash(SLICE("a"), SLICE("bc")));
    cr_expect_neq(page_hash(SLICE("abc"), SLICE("")), page_hash(SLICE("ab"), SLICE("c")));
}

Test(partition, of_a_hash)
{
    struct partitions parts;
    for (unsigned n = 1; n <= PARTITIONS_MAX; n = next_count(n)) {
        partitions_make(n, &parts);
        cr_expect_eq(partition_of(&parts, 0), 0u);
        cr_expect_eq(partition_of(&parts, UINT64_MAX), n - 1);
        for (unsigned p = 1; p < n;
             p++) { /* the first hash of p is the least h with h * n >= p * 2^32 */
            uint64_t first = (((uint64_t)p << 32) + n - 1) / n;
            cr_assert_eq(partition_of(&parts, first << 32), p, "%u of %u", p, n);
            cr_assert_eq(partition_of(&parts, (first << 32) - 1), p - 1, "%u of %u", p, n);
        }
    }
}

Test(partition, pages_are_spread_evenly)
{
    struct partitions parts;
    unsigned counts[16] = {0};
    partitions_make(16, &parts);
    for (int i = 0; i < 16000; i++) {
        char page[32];
        int n = snprintf(page, sizeof(page), "/articles/%d", i);
        counts[partition_of(
            &parts, page_hash(SLICE("default"), (struct slice){page, (size_t)n}))]++;
    }
    for (int p = 0; p < 16; p++) {
        cr_expect(counts[p] > 850 && counts[p] < 1150, "partition %d: %u", p, counts[p]);
    }
}

/* ---- visitors ---- */

/* Where hash @i of @n lies, which are spread evenly. */
static unsigned visitor_at(const struct partitions *parts, unsigned i, unsigned n)
{
    return partition_of_visitor(parts, ((uint64_t)i << 32) / n << 32 | UINT32_MAX);
}

Test(partition, visitors_lie_in_64_at_most)
{
    struct partitions parts;
    for (unsigned n = 1; n <= PARTITIONS_MAX; n = next_count(n)) {
        unsigned counts[PARTITIONS_MAX] = {0};
        unsigned have = 0;
        unsigned most = n < 64 ? n : 64;
        partitions_make(n, &parts);
        cr_expect_eq(visitor_partitions(n), most);
        for (unsigned i = 0; i < 64 * most; i++) {
            counts[visitor_at(&parts, i, 64 * most)]++;
        }
        for (unsigned p = 0; p < n; p++) {
            bool has = partition_has_visitors(&parts, p);
            cr_expect(!has || visitor_partition_number(&parts, p) == have, "%u of %u", p, n);
            have += has;
            cr_expect(has ? counts[p] >= 63 && counts[p] <= 65 : counts[p] == 0, "%u of %u: %u", p,
                n, counts[p]);
        }
        cr_expect_eq(have, most, "%u", n);
        cr_expect(n > 64 || partition_has_visitors(&parts, 0), "%u", n);
        for (unsigned i = 0; n >= 128 && i < 64; i++) {
            cr_expect_not(partition_has_visitors(&parts, i * n / 64), "%u has logs", i * n / 64);
        }
    }
}

/* Nodes of a cluster have an equal range of slots each. */
Test(partition, visitors_are_spread_over_nodes)
{
    struct partitions parts;
    partitions_make(256, &parts);
    for (unsigned nodes = 1; nodes <= 64; nodes++) {
        unsigned counts[64] = {0};
        for (unsigned p = 0; p < 256; p++) {
            counts[partition_slot(&parts, p) * nodes / SLOTS] += partition_has_visitors(&parts, p);
        }
        for (unsigned i = 0; i < nodes; i++) {
            cr_expect(64 % nodes == 0 ? counts[i] == 64 / nodes : counts[i] <= 64 / nodes + 2,
                "node %u of %u: %u", i, nodes, counts[i]);
        }
    }
}
