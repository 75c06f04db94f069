#include "storage/session/server_links.h"

#include <stdlib.h>
#include <string.h>

#include "storage/base/clock.h"
#include "storage/cluster/topology.h"

#define CONNECT_MS 1000
#define BYTES_KEPT ((size_t)256 * 1024)

void server_links_init(struct server_links *s, struct core *core, const struct redis_look *look)
{
    *s = (struct server_links){.core = core, .look = *look};
}

void server_links_release(struct server_links *s)
{
    while (s->first != NULL) {
        struct server_link *link = s->first;
        s->first = link->next;
        session_close(&link->session);
        buffer_release(&link->out);
        free(link);
    }
    *s = (struct server_links){.core = NULL};
}

void server_links_note_change(struct server_links *s)
{
    s->changes++;
    s->stood_us = monotonic_us();
}

void server_links_note_owners(struct server_links *s)
{
    unsigned version = topology_version(s->core->topology);
    if (version != s->version) {
        server_links_note_change(s);
        memset(s->owner, 0, sizeof(s->owner));
    }
    s->version = version;
}

/* ---- one link ---- */

bool server_link_flush(struct server_link *link)
{
    bool left;
    struct redis *redis = link->session.redis;
    bool queued = redis != NULL && redis_queue(redis, &link->out);
    buffer_clear(&link->out, BYTES_KEPT);
    if (!queued) {
        session_lost(&link->session); /* the next reply would be taken for one to this */
    }
    return queued && redis_send(redis, &left) == REDIS_OK_STATUS;
}

void server_link_leave(struct server_link *link)
{
    session_lost(&link->session);
    link->n_awaited = link->n_skipped = 0;
    link->is_spent = false;
    buffer_clear(&link->out, BYTES_KEPT);
}

/* ---- finding and making ---- */

static struct server_link *find_link(
    struct server_links *s, const struct redis_address *address, bool is_aside)
{
    for (struct server_link *link = s->first; link != NULL; link = link->next) {
        if (link->is_aside == is_aside &&
            redis_address_equal(&link->session.server.node.address, address)) {
            return link;
        }
    }
    return NULL;
}

static struct server_link *add_link(struct server_links *s, bool is_aside)
{
    struct server_link *link = calloc(1, sizeof(*link));
    if (link != NULL) {
        link->next = s->first;
        link->is_aside = is_aside;
        link->session.look = s->look;
        link->session.server.is_named = true;
        s->first = link;
    }
    return link;
}

struct server_link *server_links_to(
    struct server_links *s, const struct cluster_node *node, bool is_aside, int64_t deadline_ms)
{
    struct server_link *link = find_link(s, &node->address, is_aside);
    if (link == NULL) {
        link = add_link(s, is_aside);
    }
    if (link == NULL) {
        return NULL;
    }
    if (session_is_current(&link->session) && !link->is_spent) {
        return link;
    }
    if (link->n_awaited > 0) { /* dispatcher_await() will find the connection lost */
        return NULL;
    }
    server_link_leave(link);
    link->session.server.node = *node;
    int64_t until_ms = monotonic_ms() + CONNECT_MS;
    if (!session_open(&link->session, s->core, until_ms < deadline_ms ? until_ms : deadline_ms)) {
        return NULL;
    }
    server_links_note_change(s);
    return link;
}

struct server_link *server_links_of(struct server_links *s, unsigned partition, int64_t deadline_ms)
{
    struct cluster_node node;
    struct server_link *link = s->owner[partition];
    if (link != NULL && session_is_current(&link->session) && !link->is_spent) {
        return link;
    }
    link = topology_owner(s->core->topology, partition, &node)
               ? server_links_to(s, &node, false, deadline_ms)
               : NULL;
    s->owner[partition] = link;
    return link;
}
