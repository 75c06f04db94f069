/* Who owns each partition: replies to CLUSTER SLOTS, as Redis 7.0.15 and Valkey 8.0.1 give them. */
#include "storage/cluster/slot_map.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/lib/reply_notation.h"

TestSuite(slot_map, .timeout = 60);

#define ID_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define ID_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define ID_C "cccccccccccccccccccccccccccccccccccccccc"
#define ID_R "ffffffffffffffffffffffffffffffffffffffff"

static const uint16_t slots[] = {0, 5000, 8000, 16383};

static bool read_map(const char *text, struct slot_map *ret)
{
    struct arena arena = {0};
    const struct reply *reply = reply_read(&arena, slice_of(text));
    cr_assert(reply != NULL, "the test is wrong: %s", text);
    bool good = slot_map_parse(reply, "asked.example", slots, 4, ret);
    arena_release(&arena);
    return good;
}

/* The owners in the order of partitions, "-" for nobody. */
static void expect_owners(const struct slot_map *map, const char *wanted)
{
    char found[512] = "";
    for (unsigned p = 0; p < map->n_partitions; p++) {
        const struct cluster_node *node = slot_map_owner(map, p);
        size_t n = strlen(found);
        char address[ADDRESS_TEXT_SIZE] = "-";
        if (node != NULL) {
            redis_address_print(&node->address, address, sizeof(address));
        }
        snprintf(found + n, sizeof(found) - n, "%s%s", p == 0 ? "" : " ", address);
    }
    cr_expect_str_eq(found, wanted);
}

/* ---- good ---- */

Test(slot_map, three_primaries_and_a_replica)
{
    struct slot_map map;
    cr_assert(read_map("[[0, 5460, ['10.0.0.1', 6379, '" ID_A "', []],"
                       "           ['10.0.0.4', 6379, '" ID_R "', ['hostname', 'r.example']]],"
                       " [5461, 10921, ['10.0.0.2', 6379, '" ID_B "', []]],"
                       " [10922, 16383, ['10.0.0.3', 6380, '" ID_C "', []]]]",
        &map));
    expect_owners(&map, "10.0.0.1:6379 10.0.0.1:6379 10.0.0.2:6379 10.0.0.3:6380");
    cr_expect_eq(map.n_owned, 4);
    cr_expect_eq(map.n_nodes, 4);
    cr_expect_str_eq(slot_map_owner(&map, 2)->id, ID_B);
    const struct cluster_node *replica = slot_map_find(&map, ID_R);
    cr_assert(replica != NULL);
    cr_expect_eq(replica->address.port, 6379);
    cr_expect(slot_map_find(&map, "") == NULL && slot_map_find(&map, "x") == NULL);
    slot_map_release(&map);
}

Test(slot_map, a_node_with_many_ranges_is_one_node)
{
    struct slot_map map;
    cr_assert(read_map("[[0, 99, ['a', 1, '" ID_A "', []]], [100, 100, ['b', 1, '" ID_B "', []]],"
                       " [101, 16383, ['a', 1, '" ID_A "', []], ['r', 1, '" ID_R "', []]]]",
        &map));
    cr_expect_eq(map.n_nodes, 3);
    expect_owners(&map, "a:1 a:1 a:1 a:1");
    slot_map_release(&map);
}

Test(slot_map, not_all_slots_have_an_owner)
{
    struct slot_map map;
    cr_assert(read_map("[]", &map));
    expect_owners(&map, "- - - -");
    cr_expect_eq(map.n_owned, 0);
    slot_map_release(&map);
    cr_assert(read_map("[[1, 16382, ['a', 1, '" ID_A "', []]]]", &map));
    expect_owners(&map, "- a:1 a:1 -");
    cr_expect_eq(map.n_owned, 2);
    slot_map_release(&map);
}

/* cluster-preferred-endpoint-type: unknown-endpoint gives null, older servers "" for themselves. */
Test(slot_map, without_an_endpoint_it_is_the_host_that_was_asked)
{
    struct slot_map map;
    cr_assert(read_map("[[0, 5460, [null, 7001, '" ID_A "', ['ip', '10.0.0.1']]],"
                       " [5461, 16383, ['', 7002, '" ID_B "', []]]]",
        &map));
    expect_owners(
        &map, "asked.example:7001 asked.example:7001 asked.example:7002 asked.example:7002");
    slot_map_release(&map);
}

/* cluster-preferred-endpoint-type hostname, of a node that has announced no name. */
Test(slot_map, an_unknown_node_is_nobody)
{
    struct slot_map map;
    cr_assert(read_map("[[0, 5460, ['?', 7001, '" ID_A "', ['ip', '10.0.0.1']]],"
                       " [5461, 16383, ['n2.example', 7002, '" ID_B "', ['ip', '10.0.0.2']]]]",
        &map));
    expect_owners(&map, "- - n2.example:7002 n2.example:7002");
    cr_expect_eq(map.n_owned, 2);
    slot_map_release(&map);
}

Test(slot_map, other_forms_of_a_node)
{
    struct slot_map map;
    cr_assert(read_map("[[0, 8000, ['2001:db8::1', 7001, '" ID_A "', []]],"
                       " [8001, 16383, ['10.0.0.9', '7002']]]",
        &map));
    expect_owners(&map, "[2001:db8::1]:7001 [2001:db8::1]:7001 [2001:db8::1]:7001 10.0.0.9:7002");
    cr_expect_str_eq(slot_map_owner(&map, 3)->id, "");
    slot_map_release(&map);
}

/* ---- bad ---- */

Test(slot_map, refused)
{
    static const char *const bad[] = {"null", "7", "'[]'", "!'ERR unknown command'", "[7]", "[[]]",
        "[[0, 5]]", "[[0, 5, []]]", "[[0, 5, ['a']]]", "[[0, 5, 'a']]", "[['x', 5, ['a', 1]]]",
        "[[-1, 5, ['a', 1]]]", "[[5, 4, ['a', 1]]]", "[[0, 16384, ['a', 1]]]", "[[0, 5, ['a', 0]]]",
        "[[0, 5, ['a', 65536]]]", "[[0, 5, ['a', 'x']]]", "[[0, 5, ['a b', 1]]]",
        "[[0, 5, [7, 1]]]", "[[0, 5, ['a', 1, 7]]]", "[[0, 5, ['a', 1, '" ID_A "a']]]",
        "[[0, 5, ['a', 1], ['b']]]", "[[0, 5, ['a', 1]], [5, 6, ['b', 1]]]"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct slot_map map = {.n_nodes = 4711};
        cr_expect_not(read_map(bad[i], &map), "%s", bad[i]);
        cr_expect_eq(map.n_nodes, 4711, "%s: written to", bad[i]);
    }
}

/* ---- changing ---- */

Test(slot_map, an_owner_is_set)
{
    struct slot_map map;
    const struct redis_address a = {.host = "a", .port = 1}, x = {.host = "x", .port = 2};
    cr_assert(read_map("[[1, 16382, ['a', 1, '" ID_A "', []], ['r', 1, '" ID_R "', []]]]", &map));
    cr_expect(slot_map_set_owner(&map, 0, &a));
    cr_expect_eq(map.n_owned, 3);
    cr_expect_eq(map.n_nodes, 2);
    for (int i = 0; i < 2; i++) {
        cr_expect(slot_map_set_owner(&map, 1, &x));
        cr_expect_eq(map.n_owned, 3, "somebody else's, but owned as before");
        cr_expect_eq(map.n_nodes, 3);
    }
    expect_owners(&map, "a:1 x:2 a:1 -");
    const struct redis_address r = {.host = "R", .port = 1};
    cr_expect(slot_map_owns(&map, slot_map_at(&map, &x)));
    cr_expect_not(slot_map_owns(&map, slot_map_at(&map, &r)), "a replica");
    cr_expect(slot_map_set_owner(&map, 3, &r));
    cr_expect(slot_map_owns(&map, slot_map_at(&map, &r)));
    slot_map_release(&map);
}

Test(slot_map, of_one_node_and_of_nobody)
{
    struct slot_map map;
    const struct cluster_node node = {.id = "7", .address = {.host = "a", .port = 1}};
    cr_assert(slot_map_of_one(&node, 4, &map));
    expect_owners(&map, "a:1 a:1 a:1 a:1");
    cr_expect_eq(map.n_owned, 4);
    slot_map_release(&map);
    cr_assert(slot_map_of_one(NULL, 4, &map));
    expect_owners(&map, "- - - -");
    cr_expect_eq(map.n_owned, 0);
    slot_map_release(&map);
}

/* ---- comparing ---- */

Test(slot_map, maps_are_equal_by_owner_and_place)
{
    static const char *const texts[] = {
        "[[0, 16383, ['a', 1, '" ID_A "', []]]]",
        "[[0, 99, ['A', 1, '" ID_A "', []]], [100, 16383, ['a', 1, '" ID_A "', []], ['r', 1]]]",
        "[[0, 16383, ['a', 2, '" ID_A "', []]]]",
        "[[0, 16383, ['a', 1, '" ID_B "', []]]]",
        "[[0, 16382, ['a', 1, '" ID_A "', []]]]",
    };
    struct slot_map first;
    cr_assert(read_map(texts[0], &first));
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct slot_map other;
        cr_assert(read_map(texts[i], &other));
        cr_expect_eq(slot_map_equal(&first, &other), i < 2, "%s", texts[i]);
        cr_expect_eq(slot_map_equal(&other, &first), i < 2, "%s", texts[i]);
        slot_map_release(&other);
    }
    slot_map_release(&first);
}
