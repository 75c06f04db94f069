/* cluster_round.c - one round of questions to the nodes of a cluster: which nodes are asked, and
 * what follows from the answers. */
#include <stdio.h>
#include <string.h>

#include "storage/cluster/topology.h"
#include "storage/cluster/topology_state.h"

#define PLACES_IDLE     2
#define PLACES_TROUBLED 3

/* ---- whom to ask ---- */

struct asked {
    struct question questions[PLACES_TROUBLED];
    size_t n, places;
};

/* Add the node at @address to those that are asked.  False: it is among them, there is no place
 * left, or @address is not known. */
static bool asked_add(struct asked *asked, const struct redis_address *address)
{
    if (asked->n == asked->places || address->host[0] == '\0') {
        return false;
    }
    for (size_t i = 0; i < asked->n; i++) {
        if (redis_address_equal(&asked->questions[i].address, address)) {
            return false;
        }
    }
    asked->questions[asked->n++] = (struct question){.kind = QUESTION_CLUSTER, .address = *address};
    return true;
}

/* Ask the next node, by turns, of those that are in doubt, or of those that are not. */
static void ask_next_node(struct topology *t, struct asked *asked, bool doubted)
{
    unsigned *turn = doubted ? &t->turn_doubted : &t->turn_known;
    for (size_t i = 0; i < t->map.n_nodes; i++) {
        const struct cluster_node *node = &t->map.nodes[(*turn + i) % t->map.n_nodes];
        if (node->doubted == doubted && asked_add(asked, &node->address)) {
            *turn = (unsigned)((*turn + i + 1) % t->map.n_nodes);
            return;
        }
    }
}

static void ask_next_of(
    struct asked *asked, const struct redis_address *addresses, size_t n, unsigned *turn)
{
    for (size_t i = 0; i < n; i++) {
        if (asked_add(asked, &addresses[(*turn + i) % n])) {
            *turn = (unsigned)((*turn + i + 1) % n);
            return;
        }
    }
}

/* Choose one node in doubt, one known, one of the URL; then others until the places are taken.
 * There is always a place left for a node of the URL. */
static void choose_asked(struct topology *t, bool troubled, struct asked *ret)
{
    ret->n = 0;
    ret->places = troubled ? PLACES_TROUBLED : PLACES_IDLE;
    pthread_mutex_lock(&t->lock);
    t->choice.corrected = t->choice.corrected || t->corrected;
    t->corrected = false;
    ask_next_node(t, ret, true);
    ask_next_node(t, ret, false);
    if (t->map.n_nodes == 0) {
        ask_next_of(ret, t->heard, t->n_heard, &t->turn_known);
    }
    for (size_t n = 0; n < ret->places && ret->n < ret->places; n++) {
        ask_next_of(ret, t->url.seeds, t->url.n_seeds, &t->turn_seed);
        ask_next_node(t, ret, false);
    }
    pthread_mutex_unlock(&t->lock);
}

/* ---- what they answer ---- */

/* Remember the nodes that a node knows, to be asked while there is no map, though the view does not
 * count. */
static void remember_heard(struct topology *t, const struct slot_map *map)
{
    t->n_heard = 0;
    for (size_t i = 0; i < map->n_nodes && t->n_heard < REDIS_SEEDS_MAX; i++) {
        t->heard[t->n_heard++] = map->nodes[i].address;
    }
}

static bool is_the_node(const struct cluster_node *node, const struct cluster_view *view)
{
    return node->id[0] == '\0' || strcmp(node->id, view->id) == 0;
}

/* Doubt the asked nodes that do not answer well, and trust those that do. */
static void judge_asked(struct topology *t, const struct asked *asked)
{
    for (size_t i = 0; i < asked->n; i++) {
        const struct question *q = &asked->questions[i];
        struct cluster_node *node = slot_map_at(&t->map, &q->address);
        const char *fault = !q->answered     ? q->error
                            : !q->cluster.ok ? "it says that the cluster is not ok"
                            : node != NULL && !is_the_node(node, &q->cluster)
                                ? "it is another node now"
                                : NULL;
        if (node != NULL) {
            topology_doubt(t, node, fault != NULL);
        }
        if (fault != NULL && (node != NULL ? node->doubted : topology_n_unserved(t) > 0)) {
            topology_blame(t, &q->address, fault);
        }
    }
}

static void take_views(struct topology *t, struct asked *asked)
{
    struct cluster_view *views[PLACES_TROUBLED];
    size_t n = 0;
    for (size_t i = 0; i < asked->n; i++) {
        if (asked->questions[i].answered) {
            views[n++] = &asked->questions[i].cluster;
        }
    }
    pthread_mutex_lock(&t->lock);
    struct cluster_view *best =
        map_choice_make(&t->choice, &t->map, views, n, t->io->now_ms(t->io_data));
    if (best != NULL && !t->corrected) { /* a MOVED is newer than the answers of this round */
        topology_put(t, &best->map);
    } else if (t->map.n_nodes == 0 && n > 0) {
        remember_heard(t, &views[0]->map);
    }
    t->choice.corrected = t->choice.corrected || t->corrected;
    t->corrected = false;
    judge_asked(t, asked);
    if (t->map.n_owned < t->n_partitions && t->trouble[0] == '\0') {
        (void)snprintf(t->trouble, sizeof(t->trouble), "no node of the cluster has all slots");
    }
    pthread_mutex_unlock(&t->lock);
}

enum round_end cluster_round(struct topology *t, bool troubled)
{
    struct asked asked;
    choose_asked(t, troubled, &asked);
    t->io->ask(t->io_data, asked.questions, asked.n, t->io->now_ms(t->io_data) + ASK_MS);
    take_views(t, &asked);
    for (size_t i = 0; i < asked.n; i++) {
        slot_map_release(&asked.questions[i].cluster.map);
    }
    return map_choice_is_open(&t->choice) ? ROUND_OPEN : ROUND_SETTLED;
}
