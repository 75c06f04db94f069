/* The map of a cluster: when it is asked for, whom, and which view is believed. */
#include "storage/cluster/topology.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/storage/cluster/fake_cluster.h"

TestSuite(topology, .timeout = 60, .fini = fake_stop);

#define SEED   "redis-cluster://n0"
#define AGREED "n0 n0 n1 n1 n2 n2"

/* A cluster of n nodes whose map is known, and nothing is to be done. */
static void start_settled(int n, const char *url)
{
    fake_start(n, url);
    fake_run(400);
    fake_expect_owners(AGREED);
    cr_assert_eq(topology_n_unserved(fake.topology), 0);
    (void)fake_event();
    fake_forget();
}

static unsigned unserved(void)
{
    return topology_n_unserved(fake.topology);
}

/* No two rounds began within 200 ms. */
static void expect_rate_kept(void)
{
    for (size_t i = 1; i < fake.n_rounds; i++) {
        cr_expect(fake.began_ms[i] - fake.began_ms[i - 1] >= 200, "round %zu", i);
    }
}

/* ---- the beginning ---- */

Test(topology, a_cluster_that_is_not_ok_yet_is_asked_until_it_is)
{
    char trouble[TROUBLE_SIZE];
    fake_start(3, SEED);
    fake_expect_owners("- - - - - -");
    cr_expect_eq(unserved(), FAKE_PARTITIONS);
    for (int i = 0; i < 3; i++) {
        fake.nodes[i].fails = true;
    }
    fake_run(5000);
    fake_expect_owners("- - - - - -");
    cr_expect(fake.n_rounds >= 17 && fake.n_rounds <= 26, "%zu", fake.n_rounds);
    cr_expect(fake_was_asked(2), "whom a node knows may be asked, though its map does not count");
    topology_trouble(fake.topology, trouble);
    cr_expect(strstr(trouble, "not ok") != NULL, "%s", trouble);
    expect_rate_kept();
    for (int i = 0; i < 3; i++) {
        fake.nodes[i].fails = false;
    }
    fake_run(300);
    fake_expect_owners(AGREED);
    cr_expect_eq(unserved(), 0);
    cr_expect(fake_event());
    cr_expect_not(fake_event());
    topology_trouble(fake.topology, trouble);
    cr_expect_str_eq(trouble, "");
}

Test(topology, a_round_that_fails_is_repeated)
{
    char trouble[TROUBLE_SIZE];
    fake_start(3, "redis-cluster://gone,n1");
    fake.nodes[1].silent = true;
    fake_run(3000);
    cr_expect(fake.n_rounds >= 6);
    topology_trouble(fake.topology, trouble);
    cr_expect(strstr(trouble, "gone:6379: no such host") != NULL ||
                  strstr(trouble, "n1:6379: no answer") != NULL,
        "%s", trouble);
    fake.nodes[1].silent = false;
    fake_run(600);
    fake_expect_owners(AGREED);
}

Test(topology, slots_that_nobody_has_are_nobodys)
{
    char trouble[TROUBLE_SIZE];
    fake_start(3, SEED);
    fake_set_owner(5, -1, 3);
    fake_run(2000);
    fake_expect_owners("n0 n0 n1 n1 n2 -");
    cr_expect_eq(unserved(), 1);
    cr_expect(topology_unserved_since(fake.topology, 5) != 0);
    cr_expect_eq(topology_unserved_since(fake.topology, 4), 0);
    cr_expect(fake.n_rounds >= 7, "it is asked for again and again");
    topology_trouble(fake.topology, trouble);
    cr_expect_str_eq(trouble, "no node of the cluster has all slots");
}

/* ---- when all is well ---- */

Test(topology, idle_rounds_are_rare_small_and_spread)
{
    static const struct {
        uint32_t dice;
        int64_t first_ms;
    } cases[] = {{0, 5000}, {9999, 14999}, {5000, 10000}};
    for (size_t i = 0; i < 3; i++) {
        fake_start(40, "redis-cluster://n0,n1");
        fake.dice = cases[i].dice;
        fake_run(3000);
        cr_assert_eq(fake.n_rounds, 1);
        int64_t first_ms = fake.began_ms[0];
        fake_run(600000);
        cr_expect_eq(fake.began_ms[1] - first_ms, cases[i].first_ms + 1);
        cr_expect(fake.n_rounds >= 40 && fake.n_rounds <= 121, "%zu", fake.n_rounds);
        cr_expect(fake.n_asked <= 2 * fake.n_rounds + 1);
        cr_expect(fake_was_asked(0) && fake_was_asked(1) && fake_was_asked(39), "all, by turns");
        if (i < 2) {
            fake_stop();
        }
    }
}

Test(topology, a_silent_owner_is_found_without_a_hint)
{
    start_settled(3, "redis-cluster://n0,n1,n2");
    fake.nodes[2].silent = true;
    fake_run(60000);
    cr_expect_eq(unserved(), 2);
    fake_expect_owners(AGREED);
}

Test(topology, a_silent_replica_is_no_trouble)
{
    start_settled(4, "redis-cluster://n0");
    fake.nodes[3].silent = true;
    fake_hint(HINT_LOST, 0, "n3");
    fake_run(300);
    cr_expect_eq(unserved(), 0);
    fake_forget();
    fake_run(200000);
    size_t n_asked = 0;
    for (size_t i = 0; i < fake.n_asked; i++) {
        n_asked += fake.asked[i] == 3;
    }
    cr_expect(fake.n_rounds <= 41, "%zu", fake.n_rounds);
    cr_expect(n_asked > 0 && n_asked <= fake.n_rounds / 2, "by turns: %zu", n_asked);
}

/* ---- a failover ---- */

/* The refresh right after the loss finds nothing new: the promotion is seconds away. */
Test(topology, goes_on_until_the_promotion_without_another_hint)
{
    unsigned version;
    start_settled(4, SEED);
    version = topology_version(fake.topology);
    fake.nodes[1].silent = true;
    fake_hint(HINT_LOST, 2, "n1");
    cr_expect_eq(unserved(), 2);
    cr_expect(fake_event());
    int64_t lost_ms = fake.now_ms;
    fake_run(4000);
    cr_expect(fake.began_ms[0] - lost_ms <= 20, "the first one at once");
    cr_expect(fake.n_rounds >= 9, "%zu", fake.n_rounds);
    cr_expect(fake.most_at_once <= 3);
    expect_rate_kept();
    fake_expect_owners(AGREED);
    cr_expect_eq(topology_version(fake.topology), version);
    cr_expect_eq(topology_unserved_since(fake.topology, 2), lost_ms);

    fake_set_owner(2, 3, 4);
    fake_set_owner(3, 3, 4);
    fake_run(700);
    fake_expect_owners("n0 n0 n3 n3 n2 n2");
    cr_expect(topology_version(fake.topology) != version);
    cr_expect_eq(unserved(), 0);
    cr_expect(fake_event());
    fake_forget();
    fake_run(4900);
    cr_expect(fake.n_rounds <= 1, "settled: %zu", fake.n_rounds);
}

Test(topology, long_trouble_is_asked_for_less_often)
{
    start_settled(3, SEED);
    fake.nodes[2].silent = true;
    fake_hint(HINT_SILENT, 4, "n2");
    fake_run(12000);
    fake_forget();
    fake_run(60000);
    cr_expect(fake.n_rounds >= 75 && fake.n_rounds <= 125, "%zu", fake.n_rounds);
    cr_expect_eq(unserved(), 2);
    fake.nodes[2].silent = false;
    fake_run(800);
    cr_expect_eq(unserved(), 0);
}

Test(topology, a_hint_is_answered_by_one_round_if_all_is_well)
{
    static const enum topology_hint hints[] = {HINT_LOST, HINT_SILENT, HINT_DOWN, HINT_READONLY};
    start_settled(3, SEED);
    for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
        fake_forget();
        fake_hint(hints[i], 2, "n1");
        fake_hint(hints[i], 3, "n1");
        cr_expect_eq(unserved(), 2);
        fake_run(300);
        cr_expect_eq(fake.n_rounds, 1);
        cr_expect(fake_was_asked(1), "the node in doubt itself");
        cr_expect_eq(unserved(), 0);
    }
    fake_forget();
    fake_hint(HINT_UP, 0, "n1");
    fake_run(300);
    cr_expect_eq(fake.n_rounds, 0, "good news is no reason to ask");
    fake_hint(HINT_LOST, 0, "somebody.else");
    cr_expect_eq(unserved(), 0);
    fake_run(300);
    cr_expect_eq(fake.n_rounds, 1);
}

Test(topology, many_hints_are_at_most_five_rounds_a_second)
{
    start_settled(3, SEED);
    int64_t end_ms = fake.now_ms + 2000;
    while (fake.now_ms < end_ms) {
        fake_hint(HINT_LOST, 0, "n0");
        fake_run(5);
    }
    cr_expect(fake.n_rounds >= 8 && fake.n_rounds <= 11, "%zu", fake.n_rounds);
    expect_rate_kept();
}

static void lose_n2(void)
{
    fake.while_asking = NULL;
    fake_hint(HINT_LOST, 4, "n2");
}

Test(topology, a_hint_in_the_middle_of_a_round_asks_again)
{
    start_settled(3, SEED);
    fake.while_asking = lose_n2;
    fake_hint(HINT_LOST, 0, "n0");
    fake_run(500);
    cr_expect(fake.n_rounds >= 2);
    cr_expect_eq(unserved(), 0);
}

Test(topology, a_connection_that_stands_ends_the_doubt)
{
    start_settled(3, SEED);
    fake.nodes[1].silent = true;
    fake_hint(HINT_LOST, 2, "n1");
    cr_expect_eq(unserved(), 2);
    (void)fake_event();
    fake_hint(HINT_UP, 2, "n1");
    cr_expect_eq(unserved(), 0);
    cr_expect(fake_event());
}

/* A deposed primary wakes up and does not know it yet: the same map as ever, at the old epoch. */
Test(topology, a_lower_epoch_does_not_count)
{
    start_settled(4, "redis-cluster://n1,n0");
    fake.nodes[1].silent = true;
    fake_hint(HINT_LOST, 2, "n1");
    struct fake_node old = fake.nodes[1];
    fake_set_owner(2, 3, 4);
    fake_set_owner(3, 3, 4);
    fake.nodes[1] = old;
    fake_run(1500);
    fake_expect_owners("n0 n0 n3 n3 n2 n2");
    unsigned version = topology_version(fake.topology);
    fake.nodes[1].silent = false;
    for (int i = 0; i < 20; i++) {
        fake_hint(HINT_LOST, 0, "n0");
        fake_run(300);
    }
    cr_expect(fake_was_asked(1));
    fake.nodes[0].silent = fake.nodes[2].silent = fake.nodes[3].silent = true;
    fake_hint(HINT_LOST, 0, "n0");
    fake_run(5000);
    fake_expect_owners("n0 n0 n3 n3 n2 n2");
    cr_expect_eq(topology_version(fake.topology), version);
}

/* Nodes that have heard of the election, but not of its end, have the new epoch and the old map. */
Test(topology, the_winner_of_an_election_is_believed_first)
{
    start_settled(4, "redis-cluster://n3");
    for (int i = 0; i < 4; i++) {
        fake.nodes[i].current_epoch = 4;
    }
    fake.nodes[3].my_epoch = 4;
    fake.nodes[3].owner[2] = fake.nodes[3].owner[3] = 3;
    fake_hint(HINT_LOST, 2, "n1");
    fake_run(300);
    fake_expect_owners("n0 n0 n3 n3 n2 n2");
}

/* ---- views that do not count, or need a second ---- */

/* The target of a migration that broke has a wrong map, and says that the cluster is not ok. */
Test(topology, only_a_node_that_says_ok_counts)
{
    start_settled(3, SEED);
    fake.nodes[0].fails = true;
    fake.nodes[0].current_epoch = fake.nodes[0].my_epoch = 9;
    for (int p = 0; p < FAKE_PARTITIONS; p++) {
        fake.nodes[0].owner[p] = 0;
    }
    fake_hint(HINT_DOWN, 0, "n0");
    fake_run(3000);
    fake_expect_owners(AGREED);
    cr_expect_eq(unserved(), 2, "those of the node itself");
}

Test(topology, a_smaller_map_needs_a_second_node)
{
    start_settled(3, SEED);
    for (int p = 0; p < FAKE_PARTITIONS; p++) {
        fake.nodes[0].owner[p] = -1;
    }
    fake.nodes[0].current_epoch = 4;
    fake.nodes[1].silent = fake.nodes[2].silent = true;
    fake_hint(HINT_LOST, 2, "n1");
    fake_run(4000);
    fake_expect_owners(AGREED);
    fake.nodes[1].silent = fake.nodes[2].silent = false;
    fake_run(1000);
    fake_expect_owners(AGREED);
    fake_set_owner(4, -1, 5);
    for (int p = 0; p < 4; p++) {
        fake.nodes[0].owner[p] = p / 2;
    }
    fake.nodes[0].owner[5] = 2;
    fake_hint(HINT_LOST, 0, "n0");
    fake_run(1000);
    fake_expect_owners("n0 n0 n1 n1 - n2");
}

static void add_foreign(int at, const char *host)
{
    struct fake_node *node = &fake.nodes[at];
    fake.n = at + 1 > fake.n ? at + 1 : fake.n;
    *node = (struct fake_node){.host = host, .cluster = 1, .current_epoch = 50, .my_epoch = 50};
    snprintf(node->id, sizeof(node->id), "%040d", 90 + at);
    for (int p = 0; p < FAKE_PARTITIONS; p++) {
        node->owner[p] = at;
    }
}

Test(topology, another_cluster_at_an_address_of_the_url)
{
    start_settled(3, "redis-cluster://n0,x3,x4");
    add_foreign(3, "x3");
    add_foreign(4, "x4");
    for (int p = 0; p < FAKE_PARTITIONS; p++) {
        fake.nodes[3].owner[p] = fake.nodes[4].owner[p] = 3;
    }
    for (int i = 0; i < 100; i++) {
        fake_hint(HINT_LOST, 0, "n0");
        fake_run(300);
        fake_expect_owners(AGREED);
    }
    cr_expect(fake_was_asked(3) && fake_was_asked(4));

    /* The cluster that was known is gone for good; this one has taken its place. */
    fake.nodes[0].silent = fake.nodes[1].silent = fake.nodes[2].silent = true;
    fake_hint(HINT_LOST, 0, "n0");
    fake_run(9000);
    fake_expect_owners(AGREED);
    fake_run(10000);
    fake_expect_owners("x3 x3 x3 x3 x3 x3");
}

Test(topology, another_node_at_a_known_address)
{
    char trouble[TROUBLE_SIZE];
    start_settled(3, SEED);
    add_foreign(1, "n1");
    fake.nodes[0].owner[2] = fake.nodes[0].owner[3] = 0;
    fake.nodes[2].owner[2] = fake.nodes[2].owner[3] = 0;
    fake.nodes[0].silent = fake.nodes[2].silent = true;
    fake_hint(HINT_LOST, 2, "n1");
    fake_run(3000);
    cr_expect_eq(unserved(), FAKE_PARTITIONS, "the address answers, and is not the node");
    topology_trouble(fake.topology, trouble);
    fake_expect_owners(AGREED);
}

Test(topology, all_nodes_have_new_addresses)
{
    static const char *const hosts[] = {"m0", "m1", "m2"};
    start_settled(3, "redis-cluster://n0,m2");
    unsigned version = topology_version(fake.topology);
    for (int i = 0; i < 3; i++) {
        fake.nodes[i].host = hosts[i];
    }
    fake_hint(HINT_LOST, 0, "n0");
    fake_run(700);
    fake_expect_owners("m0 m0 m1 m1 m2 m2");
    cr_expect_eq(unserved(), 0);
    cr_expect(topology_version(fake.topology) != version);
    fake_forget();
    fake_run(120000);
    for (size_t i = 0; i < fake.n_asked; i++) {
        cr_expect(fake.asked[i] >= 0 || i % 2 == 1, "n0 only because it is in the URL");
    }
}

/* ---- MOVED ---- */

Test(topology, moved_is_believed_at_once)
{
    start_settled(3, SEED);
    unsigned version = topology_version(fake.topology);
    fake_set_owner(1, 2, 4);
    fake_hint(HINT_MOVED, 1, "n2");
    fake_expect_owners("n0 n2 n1 n1 n2 n2");
    cr_expect(topology_version(fake.topology) != version && fake_event());
    fake_run(300);
    cr_expect_eq(fake.n_rounds, 1);
    fake_expect_owners("n0 n2 n1 n1 n2 n2");
    version = topology_version(fake.topology);
    fake_hint(HINT_MOVED, 1, "n2");
    cr_expect_eq(topology_version(fake.topology), version, "no news");
}

/* Whoever says that a partition is there again has met that node. */
Test(topology, a_node_that_has_lost_its_last_partition_is_in_no_doubt)
{
    struct cluster_node node;
    start_settled(3, SEED);
    cr_assert(topology_owner(fake.topology, 2, &node));
    fake_hint(HINT_LOST, 2, "n1");
    cr_expect_eq(unserved(), 2);
    fake_hint(HINT_MOVED, 2, "n2");
    cr_expect(unserved() == 1 && topology_owns(fake.topology, &node));
    fake_hint(HINT_MOVED, 3, "n2");
    cr_expect(unserved() == 0 && !topology_owns(fake.topology, &node));
    fake_hint(HINT_MOVED, 3, "n1");
    cr_expect(unserved() == 0 && topology_owns(fake.topology, &node));
}

Test(topology, a_node_that_lags_does_not_undo_a_moved)
{
    start_settled(3, SEED);
    fake.nodes[1].silent = fake.nodes[2].silent = true;
    fake_hint(HINT_MOVED, 1, "n2");
    fake_run(2000);
    cr_expect(fake_was_asked(0));
    fake_expect_owners("n0 n2 n1 n1 n2 n2");
    fake.nodes[1].silent = fake.nodes[2].silent = false;
    fake_run(1500);
    fake_expect_owners(AGREED);
}

Test(topology, moved_to_a_node_that_nobody_has_named)
{
    struct cluster_node node;
    start_settled(3, SEED);
    fake_hint(HINT_MOVED, 5, "n3");
    cr_assert(topology_owner(fake.topology, 5, &node));
    cr_expect_str_eq(node.address.host, "n3");
    cr_expect_str_eq(node.id, "");
    unsigned version = topology_version(fake.topology);
    fake.n = 4;
    fake.nodes[3] = fake.nodes[2];
    fake.nodes[3].host = "n3";
    memset(fake.nodes[3].id, '3', CLUSTER_ID_SIZE - 1);
    fake_set_owner(5, 3, 4);
    fake_run(300);
    cr_assert(topology_owner(fake.topology, 5, &node));
    cr_expect_eq(node.id[0], '3');
    cr_expect_eq(topology_version(fake.topology), version, "the same node, known better");
}

/* MOVED 5 ?:6379 names nobody, and no partition goes to a node that was guessed. */
Test(topology, moved_to_a_node_without_a_name)
{
    start_settled(3, SEED);
    fake_hint(HINT_MOVED, 5, "");
    fake_expect_owners(AGREED);
    fake_run(300);
    cr_expect_eq(fake.n_rounds, 1);
    fake_hint(HINT_MOVED, FAKE_PARTITIONS, "n0");
    fake_expect_owners(AGREED);
}

static void move_p1(void)
{
    fake.while_asking = NULL;
    fake_hint(HINT_MOVED, 1, "n2");
}

Test(topology, a_map_that_was_asked_for_before_a_moved_is_older)
{
    start_settled(3, SEED);
    fake.nodes[1].silent = fake.nodes[2].silent = true;
    fake.nodes[0].current_epoch = 4;
    fake.nodes[0].owner[5] = 0;
    fake.while_asking = move_p1;
    fake_hint(HINT_LOST, 0, "n0");
    fake_run(25);
    cr_expect(fake.n_rounds == 1 && fake.while_asking == NULL);
    fake_expect_owners("n0 n2 n1 n1 n2 n2");
}
