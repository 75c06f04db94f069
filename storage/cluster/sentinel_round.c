/* sentinel_round.c - one round of questions to Sentinels: which server is the master, and is it? */
#include <stdio.h>
#include <string.h>

#include "storage/cluster/topology.h"
#include "storage/cluster/topology_state.h"

/* Copy the address of the server that the map has as master.  False: there is none. */
static bool present_master(struct topology *t, struct redis_address *ret)
{
    pthread_mutex_lock(&t->lock);
    const struct cluster_node *owner = slot_map_owner(&t->map, 0);
    if (owner != NULL) {
        *ret = owner->address;
    }
    pthread_mutex_unlock(&t->lock);
    return owner != NULL;
}

/* Put a map into place in which @node owns all partitions; NULL: no partition has an owner. */
static void put_master(struct topology *t, const struct cluster_node *node)
{
    struct slot_map map;
    if (!slot_map_of_one(node, t->n_partitions, &map)) {
        return; /* no memory: the next round tries again */
    }
    pthread_mutex_lock(&t->lock);
    topology_put(t, &map);
    pthread_mutex_unlock(&t->lock);
    slot_map_release(&map);
}

/* Take the old master out of the map when Sentinels name another one: no thread may talk with the
 * old master any more, whatever it answers. */
static void leave_old_master(struct topology *t)
{
    struct redis_address old;
    if (present_master(t, &old) && !redis_address_equal(&old, &t->sentinels.master)) {
        put_master(t, NULL);
    }
}

static void blame_sentinels(struct topology *t, const struct question *questions, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct question *q = &questions[i];
        if (q->kind == QUESTION_SENTINEL && !(q->answered && q->sentinel.known)) {
            topology_blame(t, &q->address,
                q->answered ? "the Sentinel knows no master of this name" : q->error);
            return;
        }
    }
}

/* Take what the named server says of itself: is it a master? */
static void take_role(struct topology *t, const struct question *q)
{
    bool is_master = q->answered && q->role.is_master;
    if (is_master) {
        struct cluster_node node = {.address = q->address};
        memcpy(node.id, q->role.run_id, sizeof(node.id));
        put_master(t, &node);
    }
    pthread_mutex_lock(&t->lock);
    struct cluster_node *node = slot_map_at(&t->map, &q->address);
    if (node != NULL) {
        topology_doubt(t, node, !is_master);
    }
    if (!is_master) {
        topology_blame(t, &q->address, q->answered ? "the server is not a master yet" : q->error);
    }
    pthread_mutex_unlock(&t->lock);
}

enum round_end sentinel_round(struct topology *t, bool troubled)
{
    struct question questions[QUESTIONS_MAX];
    const struct redis_address asked_master = t->sentinels.master;
    bool asks_role = troubled && t->sentinels.known;
    size_t n = sentinels_ask(&t->sentinels, questions);
    questions[n] = (struct question){.kind = QUESTION_ROLE, .address = asked_master};
    t->io->ask(t->io_data, questions, n + asks_role, t->io->now_ms(t->io_data) + ASK_MS);

    size_t answered = sentinels_take(&t->sentinels, questions, n);
    if (!t->sentinels.known) {
        pthread_mutex_lock(&t->lock);
        blame_sentinels(t, questions, n);
        pthread_mutex_unlock(&t->lock);
        return ROUND_OPEN;
    }
    leave_old_master(t);
    atomic_store(&t->n_replicas, t->sentinels.n_replicas);
    struct redis_address present;
    bool moved = !redis_address_equal(&asked_master, &t->sentinels.master);
    if (moved || (!asks_role && !present_master(t, &present))) {
        questions[n] = (struct question){.kind = QUESTION_ROLE, .address = t->sentinels.master};
        t->io->ask(t->io_data, &questions[n], 1, t->io->now_ms(t->io_data) + ASK_MS);
        asks_role = true;
    }
    if (asks_role) {
        take_role(t, &questions[n]);
    }
    /* Sentinels that are down are no outage, but all of them are asked from now on. */
    t->sentinels.ask_all = t->sentinels.ask_all || answered == 0;
    return t->sentinels.ask_all && answered > 0 ? ROUND_OPEN : ROUND_SETTLED;
}
