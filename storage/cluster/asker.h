/* asker.h - asks real nodes and Sentinels on behalf of a topology.
 *
 * Layer: storage.  Not thread-safe, but for what topology_io says: an asker belongs to the
 * topology's thread.
 *
 * Connections stay open for the next round, and are closed when they were not used for a minute.
 * The questions of one round are asked at the same time, each by a thread that lives as long as the
 * question.  So a server that is silent delays no answer of another one.
 */
#ifndef STORAGE_CLUSTER_ASKER_H
#define STORAGE_CLUSTER_ASKER_H

#include "storage/cluster/question.h"
#include "storage/redis/resolvers.h"
#include "storage/redis/url.h"
#include "storage/schema/partition.h"

struct asker;

/* Make an asker that logs in as @url says, and asks for the owners of @partitions; both are copied.
 * @resolvers outlives the asker.  NULL: out of memory. */
struct asker *asker_new(const struct redis_url *url, const struct partitions *partitions,
    struct resolvers *resolvers) MUST_CHECK;

/* Free an asker when nothing is asked any more.  NULL is harmless. */
void asker_free(struct asker *asker);

/* The functions for topology_new(); their data is the asker. */
extern const struct topology_io asker_io;

#endif
