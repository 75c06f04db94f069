/* The master that Sentinels name: whom is believed, and when the old one is left. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "storage/cluster/topology.h"

#define PARTITIONS 4
#define SERVERS    8

/* Servers on ports 7000.., Sentinels on ports 8000... */
static struct {
    struct {
        bool silent, is_master;
        int run; /* of the run id */
    } servers[SERVERS];
    struct {
        bool silent, knows_none;
        int master; /* a server */
        int64_t epoch;
        int n_others; /* the Sentinels 0..n_others it names, itself not left out */
    } sentinels[SERVERS];
    int64_t now_ms;
    size_t n_rounds, n_sentinels_asked, n_roles_asked;
    unsigned asked_ports[9000];
    struct topology *topology;
} fake;

static int64_t fake_now(void *data)
{
    (void)data;
    return fake.now_ms;
}

static uint32_t fake_random(void *data)
{
    (void)data;
    return 0;
}

static struct redis_address address_of(int port)
{
    struct redis_address address = {.host = "h", .port = port};
    return address;
}

static bool answer_role(struct question *q)
{
    int at = q->address.port - 7000;
    cr_assert(at >= 0 && at < SERVERS);
    fake.n_roles_asked++;
    if (fake.servers[at].silent) {
        return false;
    }
    q->role = (struct role_view){.is_master = fake.servers[at].is_master};
    snprintf(q->role.run_id, sizeof(q->role.run_id), "run%d", fake.servers[at].run);
    return true;
}

static bool answer_sentinel(struct question *q)
{
    int at = q->address.port - 8000;
    cr_assert(at >= 0 && at < SERVERS);
    fake.n_sentinels_asked++;
    fake.asked_ports[q->address.port]++;
    if (fake.sentinels[at].silent) {
        return false;
    }
    q->sentinel = (struct sentinel_view){.known = !fake.sentinels[at].knows_none,
        .master = address_of(7000 + fake.sentinels[at].master),
        .config_epoch = fake.sentinels[at].epoch};
    for (int i = 0; i < fake.sentinels[at].n_others; i++) {
        if (i != at) {
            q->sentinel.others[q->sentinel.n_others++] = address_of(8000 + i);
        }
    }
    return true;
}

static void fake_ask(void *data, struct question *questions, size_t n, int64_t deadline_ms)
{
    (void)data;
    fake.n_rounds++;
    int64_t ends_ms = fake.now_ms + 1;
    for (size_t i = 0; i < n; i++) {
        struct question *q = &questions[i];
        cr_assert(q->kind == QUESTION_ROLE || q->kind == QUESTION_SENTINEL);
        q->answered = q->kind == QUESTION_ROLE ? answer_role(q) : answer_sentinel(q);
        if (!q->answered) {
            snprintf(q->error, sizeof(q->error), "no answer");
            ends_ms = deadline_ms;
        }
    }
    fake.now_ms = ends_ms;
}

static void fake_interrupt(void *data)
{
    (void)data;
}

static const struct topology_io fake_io = {fake_now, fake_random, fake_ask, NULL, fake_interrupt};

/* Server 0 is master and 1 a replica; three Sentinels agree on it at epoch 5. */
static void start(const char *url)
{
    struct redis_url parsed;
    struct partitions partitions;
    memset(&fake, 0, sizeof(fake));
    fake.now_ms = 1000000;
    fake.servers[0].is_master = true;
    for (int i = 0; i < SERVERS; i++) {
        fake.servers[i].run = i;
        fake.sentinels[i].epoch = 5;
        fake.sentinels[i].n_others = 3;
    }
    cr_assert(redis_url_parse(url, &parsed) == NULL, "%s", url);
    partitions_make(PARTITIONS, &partitions);
    fake.topology = topology_new(&parsed, partitions.n, &fake_io, NULL);
    cr_assert(fake.topology != NULL);
}

static void stop(void)
{
    topology_free(fake.topology);
}

static void run_for(int64_t ms)
{
    int64_t until_ms = fake.now_ms + ms;
    for (;;) {
        int64_t next_ms = topology_step(fake.topology);
        if (next_ms > until_ms) {
            break;
        }
        fake.now_ms = next_ms > fake.now_ms ? next_ms : fake.now_ms;
    }
    fake.now_ms = until_ms > fake.now_ms ? until_ms : fake.now_ms;
}

/* The server that has all partitions; -1: nobody. */
static int master(void)
{
    struct cluster_node node;
    bool owned = topology_owner(fake.topology, 0, &node);
    for (unsigned p = 1; p < PARTITIONS; p++) {
        struct cluster_node other;
        cr_assert_eq(topology_owner(fake.topology, p, &other), owned);
        cr_assert(!owned || cluster_node_equal(&node, &other));
    }
    return owned ? node.address.port - 7000 : -1;
}

static unsigned unserved(void)
{
    return topology_n_unserved(fake.topology);
}

static void hint(enum topology_hint what, int server)
{
    struct redis_address address = address_of(7000 + server);
    topology_hint(fake.topology, what, 0, &address);
}

static void fail_over(int server, int64_t epoch)
{
    for (int i = 0; i < 3; i++) {
        fake.sentinels[i].master = server;
        fake.sentinels[i].epoch = epoch;
    }
    fake.servers[server].is_master = true;
}

TestSuite(sentinel_round, .timeout = 60, .fini = stop);

#define THREE "redis-sentinel://h:8000,h:8001,h:8002/m"

/* ---- the beginning ---- */

Test(sentinel_round, the_highest_epoch_is_believed)
{
    struct cluster_node node;
    start(THREE);
    fake.sentinels[0].master = 3; /* in a minority since long, and still sure of it */
    fake.sentinels[0].epoch = 4;
    run_for(10);
    cr_expect_eq(fake.n_sentinels_asked, 3, "all at once");
    cr_expect_eq(master(), 0);
    cr_expect_eq(unserved(), 0);
    cr_assert(topology_owner(fake.topology, 0, &node));
    cr_expect_str_eq(node.id, "run0");
}

Test(sentinel_round, nobody_answers_at_first)
{
    char trouble[TROUBLE_SIZE];
    start(THREE);
    for (int i = 0; i < 3; i++) {
        fake.sentinels[i].silent = true;
    }
    run_for(5000);
    cr_expect_eq(master(), -1);
    cr_expect(fake.n_rounds >= 15 && fake.n_rounds <= 26, "%zu", fake.n_rounds);
    topology_trouble(fake.topology, trouble);
    cr_expect(strstr(trouble, "no answer") != NULL, "%s", trouble);
    fake.sentinels[2].silent = false;
    run_for(700);
    cr_expect_eq(master(), 0, "one is enough");
}

Test(sentinel_round, no_sentinel_knows_the_name)
{
    char trouble[TROUBLE_SIZE];
    start(THREE);
    for (int i = 0; i < 3; i++) {
        fake.sentinels[i].knows_none = true;
    }
    run_for(1000);
    cr_expect_eq(master(), -1);
    topology_trouble(fake.topology, trouble);
    cr_expect(strstr(trouble, "h:8000: the Sentinel knows no master of this name") != NULL, "%s",
        trouble);
}

/* ---- while all is well ---- */

Test(sentinel_round, two_are_asked_each_second_by_turns)
{
    start(THREE);
    run_for(10);
    fake.n_sentinels_asked = fake.n_roles_asked = fake.n_rounds = 0;
    memset(fake.asked_ports, 0, sizeof(fake.asked_ports));
    run_for(30000);
    cr_expect(fake.n_rounds >= 24 && fake.n_rounds <= 41, "%zu", fake.n_rounds);
    cr_expect_eq(fake.n_sentinels_asked, 2 * fake.n_rounds);
    for (unsigned port = 8000; port < 8003; port++) {
        cr_expect(fake.asked_ports[port] >= fake.n_rounds / 2, "%u", port);
    }
}

Test(sentinel_round, sentinels_that_are_down_are_no_outage)
{
    start(THREE);
    run_for(10);
    unsigned version = topology_version(fake.topology);
    for (int i = 0; i < 3; i++) {
        fake.sentinels[i].silent = true;
    }
    run_for(60000);
    cr_expect_eq(master(), 0);
    cr_expect_eq(unserved(), 0);
    hint(HINT_LOST, 0);
    cr_expect_eq(unserved(), PARTITIONS);
    run_for(1000);
    cr_expect_eq(unserved(), 0, "the master itself has answered");
    cr_expect_eq(topology_version(fake.topology), version);
}

Test(sentinel_round, sentinels_are_found_that_the_url_does_not_name)
{
    start("redis-sentinel://h:8000/m");
    run_for(3000);
    cr_expect(fake.asked_ports[8001] > 0 && fake.asked_ports[8002] > 0);
    fake.sentinels[0].silent = true;
    fail_over(1, 6);
    run_for(3000);
    cr_expect_eq(master(), 1);
}

/* ---- failovers ---- */

Test(sentinel_round, a_new_master)
{
    start(THREE);
    run_for(10);
    unsigned version = topology_version(fake.topology);
    fake.servers[0].silent = true;
    hint(HINT_LOST, 0);
    int64_t lost_ms = fake.now_ms;
    run_for(2500);
    cr_expect_eq(master(), 0, "nobody names another one yet");
    cr_expect_eq(topology_unserved_since(fake.topology, 3), lost_ms);
    fail_over(1, 6);
    run_for(700);
    cr_expect_eq(master(), 1);
    cr_expect_eq(unserved(), 0);
    cr_expect(topology_version(fake.topology) != version);
}

/* The old master says for ten seconds more that it is one, and takes writes. */
Test(sentinel_round, the_old_master_is_left_at_once_and_for_good)
{
    char trouble[TROUBLE_SIZE];
    start(THREE);
    run_for(10);
    fail_over(1, 6);
    fake.servers[1].is_master = false; /* not yet */
    run_for(1100);
    cr_expect_eq(master(), -1, "nobody, rather than the old one");
    cr_expect_eq(unserved(), PARTITIONS);
    topology_trouble(fake.topology, trouble);
    cr_expect_str_eq(trouble, "h:7001: the server is not a master yet");
    run_for(1000);
    cr_expect_eq(master(), -1);
    fake.servers[1].is_master = true;
    run_for(300);
    cr_expect_eq(master(), 1);
    fake.sentinels[0].master = 0; /* cut off from the others */
    fake.sentinels[0].epoch = 5;
    for (int i = 0; i < 50; i++) {
        hint(HINT_LOST, 1);
        run_for(300);
        cr_assert_eq(master(), 1);
    }
    fake.sentinels[1].silent = fake.sentinels[2].silent = true;
    run_for(20000);
    cr_expect_eq(master(), 1, "nor when the others are down");
}

Test(sentinel_round, read_only_is_a_reason_to_ask)
{
    start(THREE);
    run_for(300);
    fake.servers[0].is_master = false;
    hint(HINT_READONLY, 0);
    run_for(600);
    cr_expect_eq(unserved(), PARTITIONS, "it is no master, whatever the Sentinels say");
    fail_over(1, 6);
    run_for(300);
    cr_expect_eq(master(), 1);
    cr_expect_eq(unserved(), 0);
}

Test(sentinel_round, a_master_that_was_restarted_is_another_one)
{
    struct cluster_node node;
    start(THREE);
    run_for(300);
    unsigned version = topology_version(fake.topology);
    fake.servers[0].run = 99;
    hint(HINT_LOST, 0);
    run_for(300);
    cr_assert(topology_owner(fake.topology, 0, &node));
    cr_expect_str_eq(node.id, "run99");
    cr_expect(topology_version(fake.topology) != version);
    cr_expect_eq(unserved(), 0);
}

/* SENTINEL REMOVE and MONITOR by hand: the epoch begins anew. */
Test(sentinel_round, a_lower_epoch_needs_a_majority)
{
    start(THREE);
    run_for(10);
    fake.servers[2].is_master = true;
    fake.sentinels[0].master = 2;
    fake.sentinels[0].epoch = 0;
    run_for(20000);
    cr_expect_eq(master(), 0);
    fail_over(2, 0);
    run_for(4000);
    cr_expect_eq(master(), 2);
    cr_expect_eq(unserved(), 0);
}

Test(sentinel_round, half_of_the_sentinels_are_no_majority)
{
    start("redis-sentinel://h:8000,h:8001,h:8002,h:8003/m");
    for (int i = 0; i < 4; i++) {
        fake.sentinels[i].n_others = 4;
    }
    run_for(10);
    fake.servers[2].is_master = true;
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(master(), 0, "%d of 4", i);
        fake.sentinels[i].master = 2;
        fake.sentinels[i].epoch = 0;
        run_for(20000);
    }
    cr_expect_eq(master(), 0, "the fourth has the higher epoch");
    fake.sentinels[3].silent = true;
    run_for(4000);
    cr_expect_eq(master(), 2);
}

Test(sentinel_round, when_sentinels_disagree_all_are_asked)
{
    start("redis-sentinel://h:8000,h:8001,h:8002,h:8003,h:8004/m");
    for (int i = 0; i < 5; i++) {
        fake.sentinels[i].n_others = 5;
    }
    run_for(10);
    fake.servers[2].is_master = true;
    for (int i = 0; i < 5; i++) {
        fake.sentinels[i].master = 2;
        fake.sentinels[i].epoch = 0;
    }
    run_for(2000);
    cr_expect_eq(master(), 2);
}

Test(sentinel_round, moved_means_nothing_here)
{
    start(THREE);
    run_for(300);
    hint(HINT_MOVED, 1);
    cr_expect_eq(master(), 0);
    run_for(300);
    cr_expect_eq(master(), 0);
}
