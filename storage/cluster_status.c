/* cluster_status.c - asks every server that has data about itself and about its partitions. */
#include "storage/read/operation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/clock.h"
#include "storage/cluster/topology.h"
#include "storage/redis/address.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"
#include "storage/session/asks.h"
#include "storage/session/server_health.h"

/* Milliseconds for all questions.  A server whose answer takes longer than half of what is left of
 * them is taken for one that does not answer. */
#define ASK_MS 2000

_Static_assert(CLUSTER_ADDRESS == ADDRESS_TEXT_SIZE, "an address fits");

struct looking {
    struct core *core;
    struct cluster_job *ret;
    uint16_t *server_of;  /* owned; by partition: index of its server in `ret`; UINT16_MAX: none */
    uint16_t *partitions; /* owned; the partitions that are served, in the order of asking */
    size_t n_served;      /* how many partitions are served */
    size_t at;            /* index in `partitions` of the one whose answer comes next */
    size_t n_server_replies; /* replies about the server of that partition that have come */
};

/* The index of the server at @node, which is added if it is new. */
static uint16_t place_of(struct cluster_job *ret, const struct cluster_node *node)
{
    char address[CLUSTER_ADDRESS];
    redis_address_print(&node->address, address, sizeof(address));
    for (size_t i = 0; i < ret->n_servers; i++) {
        if (strcmp(ret->servers[i].address, address) == 0) {
            return (uint16_t)i;
        }
    }
    struct cluster_server *server = &ret->servers[ret->n_servers];
    (void)snprintf(server->address, sizeof(server->address), "%s", address);
    (void)snprintf(server->id, sizeof(server->id), "%s", node->id);
    return (uint16_t)ret->n_servers++;
}

/* Find the server of each partition, and which partitions are served. */
static void find_servers(struct looking *l)
{
    struct topology *topology = l->core->topology;
    for (unsigned p = 0; p < l->ret->n_partitions; p++) {
        struct cluster_node node = {.address = l->core->url.seeds[0]}; /* without topology */
        bool known = topology == NULL || topology_owner(topology, p, &node);
        bool served = known && (topology == NULL || topology_unserved_since(topology, p) == 0);
        l->server_of[p] = known ? place_of(l->ret, &node) : UINT16_MAX;
        if (known) {
            l->ret->servers[l->server_of[p]].n_partitions++;
        }
        l->ret->n_unserved += !served;
        if (served) {
            l->partitions[l->n_served++] = (uint16_t)p;
        }
    }
}

/* Is partitions[i] the first partition of its server?  The questions about the server go with
 * it. */
static bool is_first(const struct looking *l, size_t i)
{
    for (size_t j = 0; j < i; j++) {
        if (l->server_of[l->partitions[j]] == l->server_of[l->partitions[i]]) {
            return false;
        }
    }
    return true;
}

/* Ask about all partitions that have not answered yet, and about their servers. */
static void put_questions(struct looking *l, struct asks *asks)
{
    for (size_t i = l->at; i < l->n_served; i++) {
        unsigned partition = l->partitions[i];
        if (is_first(l, i)) {
            resp_command(asks_begin(asks, partition), "INFO", "replication", NULL);
            resp_command(asks_begin(asks, partition), "CLUSTER", "NODES", NULL);
        }
        resp_text(asks_command(asks, l->core, partition, "HEXISTS", "state", 1), "cfg");
    }
}

/* Take a reply.  Replies come in the order of put_questions(): two about a server come before the
 * one about its first partition. */
static bool cluster_status_take(void *data, size_t i, const struct reply *reply)
{
    struct looking *l = data;
    unsigned partition = l->partitions[l->at];
    struct cluster_server *server = &l->ret->servers[l->server_of[partition]];
    (void)i;
    if (l->n_server_replies < 2 && is_first(l, l->at)) {
        if (l->n_server_replies++ == 0) {
            server_health_take_replication(server, reply);
        } else {
            server_health_take_nodes(server, reply); /* a Redis alone answers with an error */
            server->is_answering = true;             /* both replies about the server have come */
        }
        return true;
    }
    if (reply->type == REPLY_INTEGER && reply->integer == 0) {
        if (l->ret->n_stateless < CLUSTER_LISTED_MAX) {
            l->ret->stateless[l->ret->n_stateless] = (uint16_t)partition;
        }
        l->ret->n_stateless++;
    }
    l->n_server_replies = 0;
    l->at++;
    return true;
}

/* The server that was to answer next has not answered: ask it no more. */
static void leave_out(struct looking *l)
{
    uint16_t server = l->server_of[l->partitions[l->at]];
    size_t kept = l->at;
    for (size_t i = l->at; i < l->n_served; i++) {
        if (l->server_of[l->partitions[i]] != server) {
            l->partitions[kept++] = l->partitions[i];
        }
    }
    l->n_served = kept;
    l->n_server_replies = 0;
}

/* Ask the servers until all have answered or were left out: a server that does not answer does not
 * keep us from asking the others.  *ret_lost: a connection was lost.  False: out of memory, which
 * says nothing about a server. */
static bool ask_servers(
    struct looking *l, struct session *session, int64_t until_ms, bool *ret_lost)
{
    bool has_memory = true;
    int64_t now_ms = monotonic_ms();
    struct asks asks = asks_to(session);
    for (; has_memory && l->at < l->n_served && now_ms < until_ms; now_ms = monotonic_ms()) {
        put_questions(l, &asks);
        if (asks_run(&asks, now_ms + (until_ms - now_ms) / 2, cluster_status_take, l) !=
            REDIS_OK_STATUS) {
            leave_out(l);
            *ret_lost = true;
        }
        has_memory = !asks.starved;
    }
    return has_memory;
}

enum storage_err cluster_status_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct core *core = reader->core;
    struct cluster_job *ret = &job->u.cluster;
    unsigned n = core->partitions.n;
    int64_t until_ms = monotonic_ms() + ASK_MS;
    struct looking l = {.core = core, .ret = ret};
    *ret = (struct cluster_job){.kind = core->is_spread          ? CLUSTER_OF_NODES
                                        : core->topology == NULL ? CLUSTER_OF_ONE
                                                                 : CLUSTER_OF_SENTINELS,
        .ack_replicas = core->config.ack_replicas,
        .n_partitions = n};
    ret->servers = calloc(n, sizeof(*ret->servers));
    l.server_of = calloc(n, sizeof(*l.server_of));
    l.partitions = calloc(n, sizeof(*l.partitions));
    bool ok = ret->servers != NULL && l.server_of != NULL && l.partitions != NULL;
    if (ok) {
        find_servers(&l);
        /* A server that has not answered by then is reported as such, which is no error. */
        *ret_lost = false;
        ok = ask_servers(&l, &reader->session,
            until_ms < job->deadline_ms ? until_ms : job->deadline_ms, ret_lost);
    }
    free(l.server_of);
    free(l.partitions);
    return ok ? STORAGE_OK : STORAGE_NOMEM;
}
