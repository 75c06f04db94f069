#include "storage/session/sessions.h"

#include <stdlib.h>

#include "storage/cluster/topology.h"

struct sessions_node {
    struct sessions_node *next;
    struct session session;
};

void sessions_init(struct sessions *s, struct core *core, struct redis_look look)
{
    *s = (struct sessions){.core = core, .look = look};
}

void sessions_release(struct sessions *s)
{
    while (s->nodes != NULL) {
        struct sessions_node *node = s->nodes;
        s->nodes = node->next;
        session_close(&node->session);
        free(node);
    }
}

/* Free the sessions whose servers have no partition any more. */
static void drop_left(struct sessions *s)
{
    struct sessions_node **at = &s->nodes;
    while (*at != NULL) {
        struct sessions_node *node = *at;
        if (topology_owns(s->core->topology, &node->session.server.node)) {
            at = &node->next;
            continue;
        }
        *at = node->next;
        session_close(&node->session);
        free(node);
    }
}

static struct sessions_node *add_node(struct sessions *s, const struct cluster_node *is)
{
    struct sessions_node *node = calloc(1, sizeof(*node));
    if (node != NULL) {
        node->session.core = s->core;
        node->session.look = s->look;
        node->session.server.is_named = is != NULL;
        if (is != NULL) {
            node->session.server.node = *is;
        }
        node->next = s->nodes;
        s->nodes = node;
    }
    return node;
}

/* The session of the server that has @partition, connected or not.  NULL: the server is not known,
 * or memory is short. */
static struct sessions_node *node_of(struct sessions *s, unsigned partition)
{
    struct cluster_node owner;
    if (!s->core->is_spread) {
        return s->nodes != NULL ? s->nodes : add_node(s, NULL);
    }
    if (!topology_owner(s->core->topology, partition, &owner)) {
        return NULL;
    }
    for (struct sessions_node *node = s->nodes; node != NULL; node = node->next) {
        if (cluster_node_equal(&node->session.server.node, &owner)) {
            return node;
        }
    }
    drop_left(s);
    return add_node(s, &owner);
}

struct session *sessions_get(struct sessions *s, unsigned partition, int64_t deadline_ms)
{
    struct sessions_node *node = node_of(s, partition);
    bool is_there = node != NULL && session_reach(&node->session, s->core, deadline_ms);
    return is_there ? &node->session : NULL;
}
