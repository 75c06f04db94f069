/* prepare_replicas.c - can requests be acknowledged by replicas, and what takes a failover if none
 * need be? */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/clock.h"
#include "storage/cluster/topology.h"
#include "storage/core/prepare.h"
#include "storage/core/prepare_state.h"
#include "storage/redis/resp.h"

/* Where all servers were started together, replicas follow a second behind. */
#define FOLLOW_MS 5000

struct looking {
    struct preparation *p;
    const struct part_set *servers; /* one partition of each */
    unsigned partition;             /* whose server answers next */
};

/* How a server is called in a sentence. */
static void print_server(const struct core *core, unsigned partition, char text[ADDRESS_TEXT_SIZE])
{
    struct cluster_node node;
    (void)snprintf(text, ADDRESS_TEXT_SIZE, "this Redis");
    if (core->topology != NULL && topology_owner(core->topology, partition, &node)) {
        redis_address_print(&node.address, text, ADDRESS_TEXT_SIZE);
    }
}

/* @name has @has replicas: too few. */
static bool complain_or_refuse(struct preparation *p, const char *name, long has)
{
    char text[ADDRESS_TEXT_SIZE + 192];
    unsigned needed = p->core->config.ack_replicas;
    int64_t now_ms = monotonic_ms();
    if (p->known->few_replicas_ms == 0) {
        p->known->few_replicas_ms = now_ms;
    }
    if (now_ms - p->known->few_replicas_ms < FOLLOW_MS) {
        (void)snprintf(text, sizeof(text), "waiting for replicas: %s has %ld, --ack-replicas is %u",
            name, has, needed);
        return preparation_complain(p, text);
    }
    (void)snprintf(text, sizeof(text),
        "--ack-replicas is %u, and %s has %ld replica%s, so no request could be acknowledged "
        "there: add replicas, or start with --ack-replicas %ld",
        needed, name, has, has == 1 ? "" : "s", has);
    return preparation_refuse(p, text);
}

static bool take_replication(void *data, size_t i, const struct reply *reply)
{
    struct looking *l = data;
    static const char field[] = "connected_slaves:";
    unsigned needed = l->p->core->config.ack_replicas;
    const char *found = reply->type == REPLY_TEXT ? strstr(reply->text.p, field) : NULL;
    long has = found != NULL ? strtol(found + sizeof(field) - 1, NULL, 10) : 0;
    (void)i;
    while (!part_set_has(l->servers, l->partition)) {
        l->partition++;
    }
    unsigned partition = l->partition++;
    if (reply->type == REPLY_ERROR) {
        return preparation_complain(l->p, reply->text.p);
    }
    if (has < (long)needed) {
        char name[ADDRESS_TEXT_SIZE];
        print_server(l->p->core, partition, name);
        return complain_or_refuse(l->p, name, has);
    }
    return true;
}

bool prepare_replicas(struct preparation *p, struct session *session, int64_t deadline_ms)
{
    struct core *core = p->core;
    struct part_set servers;
    struct buffer b;
    if (!p->is_first) { /* later a replica that is not there is on its way back */
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
    buffer_init(&b);
    struct asks asks = asks_to(session, &b);
    for (unsigned partition = 0; partition < core->partitions.n; partition++) {
        if (part_set_has(&p->away, partition)) {
            part_set_remove(&servers, partition);
        }
        if (part_set_has(&servers, partition)) {
            resp_command(asks_begin(&asks, partition), "INFO", "replication", NULL);
        }
    }
    struct looking looking = {.p = p, .servers = &servers};
    bool ok = asks_run(&asks, deadline_ms, take_replication, &looking) == REDIS_OK_STATUS;
    buffer_release(&b);
    return ok;
}
