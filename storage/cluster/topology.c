#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "storage/base/cond.h"
#include "storage/base/index.h"
#include "storage/cluster/topology.h"
#include "storage/cluster/topology_state.h"

#define GAP_MS          200   /* between the beginnings of two rounds: at most 5 a second */
#define GAP_LONG_MS     500   /* the same after LONG_MS of trouble */
#define LONG_MS         10000 /* trouble of this length makes the gap longer */
#define HINT_JITTER_MS  20    /* spreads processes, which meet the same loss at the same time */
#define IDLE_CLUSTER_MS 10000 /* the gap of a cluster that is well is 0.5 to 1.5 times so long */
#define IDLE_MASTER_MS  1000  /* the gap with Sentinels, 0.75 to 1.25 times so long */

/* ---- what is served ---- */

static bool partition_is_served(const struct topology *t, unsigned partition)
{
    const struct cluster_node *owner = slot_map_owner(&t->map, partition);
    return owner != NULL && !owner->doubted;
}

/* Write to the eventfds of the watchers.  With the lock held. */
static void tell_watchers(struct topology *t)
{
    atomic_fetch_add(&t->n_changes, 1);
    for (size_t i = 0; i < t->n_watchers; i++) {
        (void)eventfd_write(t->watchers[i], 1);
    }
}

/* Bring what is served up to date with the map.  With the lock held. */
static void count_served(struct topology *t)
{
    int64_t now_ms = t->io->now_ms(t->io_data);
    unsigned n_unserved = 0;
    bool changed = false;
    for (unsigned p = 0; p < t->n_partitions; p++) {
        bool served = partition_is_served(t, p);
        changed = changed || served != (t->unserved_ms[p] == 0);
        if (served) {
            t->unserved_ms[p] = 0;
        } else if (t->unserved_ms[p] == 0) {
            t->unserved_ms[p] = now_ms > 0 ? now_ms : 1;
        }
        n_unserved += !served;
    }
    atomic_store(&t->n_unserved, n_unserved);
    if (n_unserved == 0) {
        t->trouble[0] = '\0';
    }
    if (changed) {
        tell_watchers(t);
    }
}

static void raise_version(struct topology *t)
{
    atomic_fetch_add(&t->version, 1);
    tell_watchers(t);
}

void topology_put(struct topology *t, struct slot_map *map)
{
    bool same = slot_map_equal(&t->map, map);
    for (size_t i = 0; i < map->n_nodes; i++) {
        struct cluster_node *node = &map->nodes[i];
        const struct cluster_node *before = slot_map_at(&t->map, &node->address);
        node->doubted = before != NULL && before->doubted && cluster_node_equal(before, node);
    }
    struct slot_map old = t->map;
    t->map = *map;
    *map = old;
    if (!same) {
        raise_version(t);
    }
    count_served(t);
}

void topology_doubt(struct topology *t, struct cluster_node *node, bool doubted)
{
    doubted = doubted && slot_map_owns(&t->map, node);
    if (node->doubted != doubted) {
        node->doubted = doubted;
        count_served(t);
    }
}

void topology_blame(struct topology *t, const struct redis_address *address, const char *error)
{
    char name[ADDRESS_TEXT_SIZE];
    redis_address_print(address, name, sizeof(name));
    (void)snprintf(t->trouble, sizeof(t->trouble), "%s: %s", name, error);
}

/* ---- hints ---- */

/* Take a MOVED into the map.  True: the map has changed.  With the lock held. */
static bool take_moved(struct topology *t, unsigned partition, const struct redis_address *address)
{
    const struct cluster_node *owner = slot_map_owner(&t->map, partition);
    if (t->url.kind != REDIS_CLUSTER || partition >= t->n_partitions || address->host[0] == '\0' ||
        (owner != NULL && redis_address_equal(&owner->address, address)) ||
        !slot_map_set_owner(&t->map, partition, address)) {
        return false;
    }
    t->corrected = true;
    for (size_t i = 0; i < t->map.n_nodes; i++) { /* a node that owns nothing is not in doubt */
        struct cluster_node *node = &t->map.nodes[i];
        node->doubted = node->doubted && slot_map_owns(&t->map, node);
    }
    return true;
}

static const char *hint_text(enum topology_hint hint)
{
    switch (hint) {
    case HINT_LOST:
        return "the connection was lost";
    case HINT_SILENT:
        return "no answer";
    case HINT_DOWN:
        return "the node says that the cluster is down";
    case HINT_READONLY:
        return "the server takes no writes";
    case HINT_MOVED:
    case HINT_UP:
        break;
    }
    return "";
}

void topology_hint(struct topology *t, enum topology_hint hint, unsigned partition,
    const struct redis_address *address)
{
    pthread_mutex_lock(&t->lock);
    struct cluster_node *node = slot_map_at(&t->map, address);
    if (hint == HINT_MOVED) {
        if (take_moved(t, partition, address)) {
            raise_version(t);
            count_served(t);
        }
    } else if (node != NULL) {
        topology_doubt(t, node, hint != HINT_UP);
        if (node->doubted) {
            topology_blame(t, address, hint_text(hint));
        }
    }
    bool wakes = hint != HINT_UP && !t->hinted;
    t->hinted = t->hinted || wakes;
    pthread_mutex_unlock(&t->lock);
    if (wakes) {
        (void)eventfd_write(t->wake_fd, 1);
    }
}

/* ---- when to ask ---- */

static int64_t topology_draw(struct topology *t, int64_t below)
{
    return (int64_t)(t->io->random(t->io_data) % (uint32_t)below);
}

/* Move the next round forward because of a hint, if there has been one. */
static void take_hint(struct topology *t, int64_t now_ms)
{
    pthread_mutex_lock(&t->lock);
    bool hinted = t->hinted && !t->hint_seen;
    pthread_mutex_unlock(&t->lock);
    if (!hinted) {
        return;
    }
    int64_t soonest_ms = now_ms + topology_draw(t, HINT_JITTER_MS);
    int64_t allowed_ms = t->last_ms + GAP_MS;
    soonest_ms = soonest_ms > allowed_ms ? soonest_ms : allowed_ms;
    t->hint_seen = true;
    t->next_ms = t->next_ms < soonest_ms ? t->next_ms : soonest_ms;
}

static void plan_next(struct topology *t, enum round_end end, int64_t now_ms)
{
    if (end == ROUND_SETTLED && topology_n_unserved(t) == 0) {
        int64_t idle_ms = t->url.kind == REDIS_CLUSTER ? IDLE_CLUSTER_MS : IDLE_MASTER_MS;
        int64_t spread_ms = t->url.kind == REDIS_CLUSTER ? idle_ms : idle_ms / 2;
        t->troubled_ms = 0;
        t->next_ms = now_ms + idle_ms - spread_ms / 2 + topology_draw(t, spread_ms);
        return;
    }
    if (t->troubled_ms == 0) {
        t->troubled_ms = now_ms;
    }
    int64_t gap_ms = now_ms - t->troubled_ms < LONG_MS ? GAP_MS : GAP_LONG_MS;
    t->next_ms = t->last_ms + gap_ms + topology_draw(t, gap_ms / 2);
}

int64_t topology_step(struct topology *t)
{
    int64_t now_ms = t->io->now_ms(t->io_data);
    take_hint(t, now_ms);
    if (now_ms < t->next_ms) {
        return t->next_ms;
    }
    bool troubled = t->hint_seen || t->troubled_ms != 0 || topology_n_unserved(t) > 0;
    pthread_mutex_lock(&t->lock);
    t->hinted = false;
    pthread_mutex_unlock(&t->lock);
    t->hint_seen = false;
    t->last_ms = now_ms;
    enum round_end end =
        t->url.kind == REDIS_CLUSTER ? cluster_round(t, troubled) : sentinel_round(t, troubled);
    now_ms = t->io->now_ms(t->io_data);
    plan_next(t, end, now_ms);
    take_hint(t, now_ms); /* a hint that came during the round may be newer than the answers */
    return t->next_ms;
}

/* ---- the thread ---- */

static void *topology_run(void *data)
{
    struct topology *t = data;
    while (!atomic_load(&t->stopping)) {
        eventfd_t ignored;
        int64_t until_ms = topology_step(t);
        if (t->io->wait(t->io_data, t->wake_fd, sentinels_listen(&t->sentinels), until_ms)) {
            pthread_mutex_lock(&t->lock);
            t->hinted = true;
            pthread_mutex_unlock(&t->lock);
        }
        (void)eventfd_read(t->wake_fd, &ignored);
    }
    return NULL;
}

bool topology_start(struct topology *t)
{
    t->running = pthread_create(&t->thread, NULL, topology_run, t) == 0;
    return t->running;
}

void topology_stop(struct topology *t)
{
    if (!t->running) {
        return;
    }
    atomic_store(&t->stopping, true);
    t->io->interrupt(t->io_data);
    (void)eventfd_write(t->wake_fd, 1);
    (void)pthread_join(t->thread, NULL);
    t->running = false;
}

/* ---- life ---- */

struct topology *topology_new(
    const struct redis_url *url, unsigned n_partitions, const struct topology_io *io, void *io_data)
{
    struct topology *t = calloc(1, sizeof(*t));
    if (t == NULL) {
        return NULL;
    }
    t->url = *url;
    t->n_partitions = n_partitions;
    t->io = io;
    t->io_data = io_data;
    t->last_ms = t->next_ms = INT64_MIN / 2;
    mutex_init(&t->lock);
    t->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sentinels_init(&t->sentinels, url);
    if (t->wake_fd < 0 || !slot_map_of_one(NULL, n_partitions, &t->map)) {
        topology_free(t);
        return NULL;
    }
    count_served(t);
    return t;
}

void topology_free(struct topology *t)
{
    if (t == NULL) {
        return;
    }
    if (t->wake_fd >= 0) {
        (void)close(t->wake_fd);
    }
    slot_map_release(&t->map);
    map_choice_release(&t->choice);
    free(t->watchers);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

/* ---- the map ---- */

unsigned topology_version(const struct topology *t)
{
    return atomic_load(&t->version);
}

bool topology_owner(struct topology *t, unsigned partition, struct cluster_node *ret)
{
    pthread_mutex_lock(&t->lock);
    const struct cluster_node *owner = slot_map_owner(&t->map, partition);
    if (owner != NULL) {
        *ret = *owner;
    }
    pthread_mutex_unlock(&t->lock);
    return owner != NULL;
}

void topology_owners(struct topology *t, uint16_t ret[PARTITIONS_MAX])
{
    pthread_mutex_lock(&t->lock);
    memcpy(ret, t->map.owner, t->map.n_partitions * sizeof(*ret));
    pthread_mutex_unlock(&t->lock);
}

bool topology_owns(struct topology *t, const struct cluster_node *node)
{
    pthread_mutex_lock(&t->lock);
    const struct cluster_node *known = slot_map_at(&t->map, &node->address);
    bool owns = known != NULL && cluster_node_equal(known, node) && slot_map_owns(&t->map, known);
    pthread_mutex_unlock(&t->lock);
    return owns;
}

unsigned topology_n_replicas(const struct topology *t)
{
    return atomic_load(&t->n_replicas);
}

unsigned topology_n_unserved(const struct topology *t)
{
    return atomic_load(&t->n_unserved);
}

int64_t topology_unserved_since(struct topology *t, unsigned partition)
{
    pthread_mutex_lock(&t->lock);
    int64_t since_ms = t->unserved_ms[partition];
    pthread_mutex_unlock(&t->lock);
    return since_ms;
}

void topology_trouble(struct topology *t, char text[TROUBLE_SIZE])
{
    pthread_mutex_lock(&t->lock);
    memcpy(text, t->trouble, TROUBLE_SIZE);
    pthread_mutex_unlock(&t->lock);
}

unsigned topology_changes(const struct topology *t)
{
    return atomic_load(&t->n_changes);
}

bool topology_watch(struct topology *t, int fd)
{
    pthread_mutex_lock(&t->lock);
    bool ok = array_reserve(&t->watchers, &t->watchers_room, t->n_watchers, sizeof(*t->watchers));
    if (ok) {
        t->watchers[t->n_watchers++] = fd;
    }
    pthread_mutex_unlock(&t->lock);
    return ok;
}

void topology_unwatch(struct topology *t, int fd)
{
    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->n_watchers; i++) {
        if (t->watchers[i] == fd) {
            t->watchers[i] = t->watchers[--t->n_watchers];
            break;
        }
    }
    pthread_mutex_unlock(&t->lock);
}
