/* listener.h - listens, during the topology's sleep, to what one Sentinel says of failovers.
 *
 * Layer: storage.  Not thread-safe: a listener belongs to the topology's thread.
 *
 * What a Sentinel says is a hint and no more: Sentinels are asked each second anyway.  The
 * subscription stays with one Sentinel as long as that one answers pings.
 */
#ifndef STORAGE_CLUSTER_LISTENER_H
#define STORAGE_CLUSTER_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/redis/redis.h"
#include "storage/redis/resolvers.h"
#include "storage/redis/url.h"

struct listener {
    const struct redis_url *url;
    struct resolvers *resolvers;
    const struct redis_look *look;
    struct redis *redis; /* NULL: not subscribed */
    int64_t tried_ms, pinged_ms, heard_ms;
};

/* @url says as whom to log in and which master is meant; @look ends waits.  All pointers must
 * outlive the listener. */
void listener_init(struct listener *listener, const struct redis_url *url,
    struct resolvers *resolvers, const struct redis_look *look);
void listener_release(struct listener *listener);

/* Sleep until @until_ms (CLOCK_MONOTONIC), until @wake_fd can be read, or until the Sentinel speaks
 * of the master.  A listener without a subscription subscribes at @listen, trying at most once a
 * second; @listen NULL: not now.  True: the Sentinel has spoken of the master. */
bool listener_wait(
    struct listener *listener, int wake_fd, const struct redis_address *listen, int64_t until_ms);

#endif
