/* prepare_replicas.c - can replicas acknowledge requests, and if they need not, what can a failover
 * lose? */
#include <stdio.h>

#include "storage/base/clock.h"
#include "storage/cluster/topology.h"
#include "storage/prepare/prepare.h"
#include "storage/prepare/prepare_state.h"
#include "storage/redis/resp.h"
#include "storage/session/server_health.h"

/* How long to wait for replicas: if all servers were started together, replicas come a second
 * later. */
#define FOLLOW_MS 5000

struct looking {
    struct preparation *p;
    const struct part_set *servers; /* one partition of each */
    unsigned partition;             /* whose server answers next */
    long n_replicas;                /* of the server that has answered last */
};

/* Note that the server of @partition has @has replicas, too few.  @awaits: a replica may come back.
 * False: the start does not go on. */
static bool take_few(struct preparation *p, unsigned partition, long has, bool awaits)
{
    char name[ADDRESS_TEXT_SIZE];
    char text[ADDRESS_TEXT_SIZE + 192];
    unsigned needed = p->core->config.ack_replicas;
    int64_t now_ms = monotonic_ms();
    server_name(p->core, partition, name, sizeof(name));
    if (name[0] == '\0') {
        (void)snprintf(name, sizeof(name), "this Redis");
    }
    if (p->known->few_replicas_ms == 0) {
        p->known->few_replicas_ms = now_ms;
    }
    if (now_ms - p->known->few_replicas_ms < FOLLOW_MS) {
        (void)snprintf(text, sizeof(text), "waiting for replicas: %s has %ld, --ack-replicas is %u",
            name, has, needed);
        return preparation_complain(p, text);
    }
    if (awaits) {
        (void)snprintf(p->few_replicas, sizeof(p->few_replicas),
            "%s has %ld replica%s, --ack-replicas is %u", name, has, has == 1 ? "" : "s", needed);
        return true;
    }
    (void)snprintf(text, sizeof(text),
        "--ack-replicas is %u, and %s has %ld replica%s, so no request could be acknowledged "
        "there: add replicas, or start with --ack-replicas %ld",
        needed, name, has, has == 1 ? "" : "s", has);
    return preparation_refuse(p, text);
}

/* Take a reply to INFO replication or, in a cluster, to CLUSTER NODES behind it. */
static bool take_server(void *data, size_t i, const struct reply *reply)
{
    struct looking *l = data;
    struct preparation *p = l->p;
    bool is_spread = p->core->is_spread;
    if (reply->type == REPLY_ERROR) {
        return preparation_complain(p, reply->text.p);
    }
    if (!is_spread || i % 2 == 0) {
        l->n_replicas = (long)decimal_parse(reply_field(reply, "connected_slaves:"), 0);
    }
    if (is_spread && i % 2 == 0) {
        return true;
    }
    while (!part_set_has(l->servers, l->partition)) {
        l->partition++;
    }
    unsigned partition = l->partition++;
    if (l->n_replicas >= (long)p->core->config.ack_replicas) {
        return true;
    }
    bool awaits = is_spread
                      ? server_health_awaits_replica(reply)
                      : p->core->topology != NULL && topology_n_replicas(p->core->topology) > 0;
    return take_few(p, partition, l->n_replicas, awaits);
}

bool prepare_replicas(struct preparation *p)
{
    struct core *core = p->core;
    struct part_set servers;
    if (!p->is_first) { /* after the start a replica that is away is expected to come back */
        return true;
    }
    if (core->config.ack_replicas == 0) {
        if (core->topology != NULL) {
            core_notice(core, STORAGE_MAY_FORGET,
                "--ack-replicas is 0: a failover takes what its replica had not received; this "
                "process appends it again for --log-hold, unless it ends before");
        }
        return true;
    }
    if (!servers_each(core, &servers) && p->n_away == 0) {
        return preparation_complain(p, "it is not known yet which servers have the data");
    }
    struct asks asks = asks_to(p->session);
    for (unsigned partition = 0; partition < core->partitions.n; partition++) {
        if (part_set_has(&p->away, partition)) {
            part_set_remove(&servers, partition);
        }
        if (part_set_has(&servers, partition)) {
            resp_command(asks_begin(&asks, partition), "INFO", "replication", NULL);
            if (core->is_spread) {
                resp_command(asks_begin(&asks, partition), "CLUSTER", "NODES", NULL);
            }
        }
    }
    struct looking looking = {.p = p, .servers = &servers};
    return asks_run(&asks, p->deadline_ms, take_server, &looking) == REDIS_OK_STATUS;
}
