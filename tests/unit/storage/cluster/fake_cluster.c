#include "tests/unit/storage/cluster/fake_cluster.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake fake;

static int64_t fake_now(void *data)
{
    (void)data;
    return fake.now_ms;
}

static uint32_t fake_random(void *data)
{
    (void)data;
    return fake.dice;
}

static int find_host(const char *host)
{
    for (int i = 0; i < fake.n; i++) {
        if (strcmp(fake.nodes[i].host, host) == 0) {
            return i;
        }
    }
    return -1;
}

/* The nodes of the same cluster, and whom @node believes to own what. */
static void make_map(const struct fake_node *node, struct slot_map *map)
{
    uint16_t place[FAKE_NODES];
    *map = (struct slot_map){.n_partitions = FAKE_PARTITIONS};
    map->room = (size_t)fake.n;
    map->nodes = calloc(map->room, sizeof(*map->nodes));
    for (int i = 0; i < fake.n; i++) {
        struct cluster_node *known = &map->nodes[map->n_nodes];
        if (fake.nodes[i].cluster == node->cluster) {
            memcpy(known->id, fake.nodes[i].id, CLUSTER_ID_SIZE);
            snprintf(known->address.host, sizeof(known->address.host), "%s", fake.nodes[i].host);
            known->address.port = 6379;
            place[i] = (uint16_t)map->n_nodes++;
        }
    }
    for (int p = 0; p < FAKE_PARTITIONS; p++) {
        map->owner[p] = node->owner[p] < 0 ? SLOT_MAP_NOBODY : place[node->owner[p]];
        map->n_owned += node->owner[p] >= 0;
    }
}

static void fake_ask(void *data, struct question *questions, size_t n, int64_t deadline_ms)
{
    (void)data;
    int64_t ends_ms = fake.now_ms + 1;
    cr_assert(fake.n_asked + n < FAKE_ASKED);
    fake.began_ms[fake.n_rounds++] = fake.now_ms;
    fake.most_at_once = n > fake.most_at_once ? n : fake.most_at_once;
    for (size_t i = 0; i < n; i++) {
        struct question *q = &questions[i];
        int at = find_host(q->address.host);
        fake.asked[fake.n_asked++] = at;
        if (at < 0 || fake.nodes[at].silent) {
            snprintf(q->error, sizeof(q->error), "%s", at < 0 ? "no such host" : "no answer");
            ends_ms = at >= 0 ? deadline_ms : ends_ms;
            continue;
        }
        const struct fake_node *node = &fake.nodes[at];
        q->answered = true;
        q->cluster = (struct cluster_view){
            .ok = !node->fails, .current_epoch = node->current_epoch, .my_epoch = node->my_epoch};
        memcpy(q->cluster.id, node->id, CLUSTER_ID_SIZE);
        make_map(node, &q->cluster.map);
    }
    if (fake.while_asking != NULL) {
        fake.while_asking();
    }
    fake.now_ms = ends_ms;
}

static bool fake_wait(void *data, int wake_fd, const struct redis_address *listen, int64_t until_ms)
{
    (void)data, (void)wake_fd, (void)listen, (void)until_ms;
    cr_assert_fail("there is no thread");
    return false;
}

static void fake_interrupt(void *data)
{
    (void)data;
}

static const struct topology_io fake_io = {
    fake_now, fake_random, fake_ask, fake_wait, fake_interrupt};

void fake_start(int n, const char *url)
{
    static char hosts[FAKE_NODES][16];
    struct redis_url parsed;
    struct partitions partitions;
    memset(&fake, 0, sizeof(fake));
    fake.n = n;
    fake.now_ms = 1000000;
    for (int i = 0; i < n; i++) {
        struct fake_node *node = &fake.nodes[i];
        snprintf(hosts[i], sizeof(hosts[i]), "n%d", i);
        node->host = hosts[i];
        snprintf(node->id, sizeof(node->id), "%040d", i);
        node->current_epoch = 3;
        node->my_epoch = i < 3 ? i + 1 : 0;
        for (int p = 0; p < FAKE_PARTITIONS; p++) {
            node->owner[p] = p / 2 < n ? p / 2 : n - 1;
        }
    }
    cr_assert(redis_url_parse(url, &parsed) == NULL, "%s", url);
    partitions_make(FAKE_PARTITIONS, &partitions);
    fake.changes = 0;
    fake.topology = topology_new(&parsed, partitions.n, &fake_io, NULL);
    cr_assert(fake.topology != NULL);
}

void fake_stop(void)
{
    topology_free(fake.topology);
    fake.topology = NULL;
}

void fake_set_owner(int partition, int node, int64_t epoch)
{
    for (int i = 0; i < fake.n; i++) {
        fake.nodes[i].owner[partition] = node;
        fake.nodes[i].current_epoch = epoch;
    }
    if (node >= 0) {
        fake.nodes[node].my_epoch = epoch;
    }
}

void fake_run(int64_t ms)
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

void fake_forget(void)
{
    fake.n_asked = fake.n_rounds = fake.most_at_once = 0;
}

bool fake_was_asked(int node)
{
    for (size_t i = 0; i < fake.n_asked; i++) {
        if (fake.asked[i] == node) {
            return true;
        }
    }
    return false;
}

void fake_expect_owners(const char *wanted)
{
    char found[FAKE_PARTITIONS * 260] = "";
    for (unsigned p = 0; p < FAKE_PARTITIONS; p++) {
        struct cluster_node node;
        size_t n = strlen(found);
        bool owned = topology_owner(fake.topology, p, &node);
        snprintf(found + n, sizeof(found) - n, "%s%s", p == 0 ? "" : " ",
            owned ? node.address.host : "-");
    }
    cr_expect_str_eq(found, wanted);
}

void fake_hint(enum topology_hint hint, int partition, const char *host)
{
    struct redis_address address = {.port = 6379};
    snprintf(address.host, sizeof(address.host), "%s", host);
    topology_hint(fake.topology, hint, (unsigned)partition, &address);
}

bool fake_event(void)
{
    unsigned changes = topology_changes(fake.topology);
    bool there = changes != fake.changes;
    fake.changes = changes;
    return there;
}
