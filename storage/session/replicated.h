/* replicated.h - do replicas have what servers of a cluster have written?
 *
 * Layer: storage.  Belongs to the thread of the session.
 * Source: the command WAIT (redis.io/commands/wait), tried on Redis 7.0.15 and Valkey 8.0.1.
 *
 * WAIT waits for what its own connection has written last, and as the first command of a connection
 * it is answered at once.  So the key `probe` is written before WAIT, on a full server, too.  The
 * stream to the replicas has one order: a replica that has that write has all that the server had
 * written before, for any client.
 */
#ifndef STORAGE_SESSION_REPLICATED_H
#define STORAGE_SESSION_REPLICATED_H

#include "storage/schema/part_set.h"
#include "storage/session/dispatcher.h"

/* When too few replicas have acknowledged for so long, replicas are not waited for any more:
 * requests are refused, and what was written is folded without them. */
#define REPLICAS_PATIENCE_MS 1000

/* Is an entry of a log folded only when replicas have it, or when too few have had it for so long
 * that questions would wait for it?  In a cluster the record of a key and what its request counts
 * for lie on servers that go back one without the other. */
static inline bool replicated_before_folded(const struct core *core)
{
    return core->is_spread && core->config.ack_replicas > 0;
}

/* Append two commands to @out: the write of `probe`, and WAIT for @n replicas for @wait_ms.  @tag:
 * of a partition of the server.  One connection must carry out both, in this order. */
void replicated_put(struct buffer *out, const struct script_digests *scripts, const char *tag,
    unsigned n, int64_t wait_ms);

/* Ask the servers of the partitions @asked, all at the same time, over the dispatcher of @session:
 * do @n replicas have all that the server had written before this call?  Each server waits for its
 * replicas for @wait_ms, within @deadline_ms (CLOCK_MONOTONIC).  *ret: the partitions whose servers
 * say yes.  Not REDIS_OK_STATUS: a connection was lost, or a partition has another server now. */
enum redis_status replicated_ask(struct core *core, struct session *session,
    const struct part_set *asked, unsigned n, int64_t wait_ms, int64_t deadline_ms,
    struct part_set *ret) MUST_CHECK;

#endif
