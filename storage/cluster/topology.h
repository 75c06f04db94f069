/* topology.h - which server has each partition: the map that all threads share.
 *
 * Layer: storage.  Thread-safe, but for what says otherwise.
 *
 * The URL tells what there is: a cluster, whose nodes share the partitions; or a master that
 * Sentinels name, which has every partition until they name another one.  One Redis has every
 * partition for ever, and needs no topology.  One thread, the topology's, keeps the map: it asks
 * nodes or Sentinels, and takes hints from other threads about what they meet on their connections.
 *
 * How often the thread asks:
 *
 *     a hint, a partition not served, a map not settled    at most 5 times a second; after 10 s of
 *                                                          trouble about twice a second
 *     all is well                                          a cluster 5 to 15 s apart, Sentinels
 *                                                          about 1 s apart
 *
 * A round asks 2 or 3 nodes of a cluster: one in doubt, one known, one of the URL, each by turns.
 * No deadline ends this: rounds go on while any partition is not served.
 *
 * A partition is served if its owner is known and not in doubt.  A node comes into doubt when a
 * hint or a question finds it lost.  It leaves the doubt when a question reaches it, when a hint
 * says that a connection stands, or when it owns nothing any more.
 */
#ifndef STORAGE_CLUSTER_TOPOLOGY_H
#define STORAGE_CLUSTER_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/compiler.h"
#include "storage/cluster/question.h"
#include "storage/redis/url.h"
#include "storage/schema/partition.h"

struct topology;

/* ---- life ---- */

/* Make the topology of @url, the URL of a cluster or of Sentinels, which is copied.  @io and
 * @io_data must outlive the topology.  No partition has an owner yet.  NULL: no memory or no file
 * descriptor. */
struct topology *topology_new(const struct redis_url *url, unsigned n_partitions,
    const struct topology_io *io, void *io_data) MUST_CHECK;

/* Start the topology's thread.  False: no thread can be had. */
bool topology_start(struct topology *topology) MUST_CHECK;

/* Interrupt what the thread asks, and end it.  Harmless without a thread. */
void topology_stop(struct topology *topology);

/* Free a topology whose thread has ended, and which has no other user.  NULL is harmless. */
void topology_free(struct topology *topology);

/* What the thread does over and over: ask, if it is time, and take the answers.  Returns when to
 * call this again, in milliseconds of the io's clock, unless a hint comes before.  Only for the
 * thread, and for tests without a thread. */
int64_t topology_step(struct topology *topology);

/* ---- the map ---- */

/* A number that changes whenever a partition gets another owner, or loses its owner. */
unsigned topology_version(const struct topology *topology);

/* Copy the owner of a partition: its address, and its id (of a node of a cluster; of a master its
 * run id; else "").  False: no owner is known. */
bool topology_owner(
    struct topology *topology, unsigned partition, struct cluster_node *ret) MUST_CHECK;

/* Write for each partition a number of its owner, the same for partitions of one node;
 * SLOT_MAP_NOBODY: no owner is known. */
void topology_owners(struct topology *topology, uint16_t ret[PARTITIONS_MAX]);

/* Does @node own any partition, at this address and under this id? */
bool topology_owns(struct topology *topology, const struct cluster_node *node) MUST_CHECK;

/* How many replicas of the master the Sentinels know of, also those that are away; 0: none, or
 * there are no Sentinels.  Costs next to nothing. */
unsigned topology_n_replicas(const struct topology *topology);

/* How many partitions are not served.  Costs next to nothing. */
unsigned topology_n_unserved(const struct topology *topology);

/* Since when a partition is not served, in milliseconds of the io's clock; 0: it is served. */
int64_t topology_unserved_since(struct topology *topology, unsigned partition);

/* Write why partitions are not served: a text that names a server; "" if all are served, or if the
 * reason is not known. */
void topology_trouble(struct topology *topology, char text[TROUBLE_SIZE]);

/* How often the version, or which partitions are served, has changed.  Costs next to nothing. */
unsigned topology_changes(const struct topology *topology);

/* From now on write to @fd, an eventfd, at each such change, so that a thread's poll() wakes up.
 * topology_unwatch() ends that, and must come before @fd is closed.  False: out of memory. */
bool topology_watch(struct topology *topology, int fd) MUST_CHECK;
void topology_unwatch(struct topology *topology, int fd);

/* ---- hints ---- */

enum topology_hint {
    HINT_MOVED,    /* a MOVED says that the node has the partition, which is believed at once */
    HINT_LOST,     /* a connection to the node was refused, closed or reset */
    HINT_SILENT,   /* a thread has asked the node something, and has had no answer for long */
    HINT_DOWN,     /* the node says CLUSTERDOWN */
    HINT_READONLY, /* the node takes no writes: READONLY, UNBLOCKED */
    HINT_UP,       /* a connection to the node stands, and the node is the one that was meant */
};

/* Tell what happened on a connection to the node at @address; for HINT_MOVED @address is the one
 * that the error names.  @partition is used for HINT_MOVED only.  Never waits for a server. */
void topology_hint(struct topology *topology, enum topology_hint hint, unsigned partition,
    const struct redis_address *address);

#endif
