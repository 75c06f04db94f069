/* server_health.h - what a server says of its replicas, and of slots that are being moved.
 *
 * Layer: storage, pure.  Thread-safe: no state.  Servers may be of any version or make, so what
 * cannot be read in a reply is left out.
 */
#ifndef STORAGE_SESSION_SERVER_HEALTH_H
#define STORAGE_SESSION_SERVER_HEALTH_H

#include "storage/job/cluster_job.h"
#include "storage/redis/reply.h"

/* Read the reply to INFO replication into the replicas of @server. */
void server_health_take_replication(struct cluster_server *server, const struct reply *reply);

/* Read the node's own line of the reply to CLUSTER NODES: how many slots it has, and which are
 * open. */
void server_health_take_nodes(struct cluster_server *server, const struct reply *reply);

/* By a primary's reply to CLUSTER NODES: is there a node that may yet become its replica?  That is
 * a replica of its own, also one that is away, or a primary without slots: an old primary, which
 * was replaced, becomes a replica when it is back. */
bool server_health_awaits_replica(const struct reply *reply);

#endif
