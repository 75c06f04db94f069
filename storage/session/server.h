/* server.h - which server a thread's connection leads to, and whether that still holds.
 *
 * Layer: storage.  Thread-safe, but a struct server belongs to one thread.
 *
 * One Redis has every partition for ever.  With a cluster or Sentinels the topology
 * (cluster/topology.h) says which server has a partition now.  A thread that connects asks for the
 * server, and the server itself must then say that it is the one that was meant.  A thread that
 * uses a connection that stands asks whether it still leads to the right server: an old master that
 * was cut off goes on answering, and must not be believed.
 *
 *     one Redis     core->topology is NULL: nothing is asked, nothing is checked
 *     Sentinels     the server must say by ROLE that it is a master
 *     a cluster     the server must say by CLUSTER MYID that it is the node in the map
 */
#ifndef STORAGE_SESSION_SERVER_H
#define STORAGE_SESSION_SERVER_H

#include "storage/cluster/slot_map.h"
#include "storage/core/core.h"
#include "storage/redis/endpoint.h"
#include "storage/redis/reply.h"
#include "storage/schema/part_set.h"

/* The server that a connection leads to.  Zeroed: none yet. */
struct server {
    unsigned partition;       /* the server of this partition is meant; set by the thread */
    bool is_named;            /* or `node` is meant, of a cluster, whatever it owns; set likewise */
    struct cluster_node node; /* not set if there is one Redis */
    unsigned version;         /* of the topology, when the node was its partition's owner */
    bool was_refused; /* server_refused() has told why: leaving the server is no sign of a loss */
};

/* ---- life ---- */

/* Read from @url where the data is, after core->partitions is made: one Redis, or a topology, whose
 * thread is started.  False: *ret_error says why, a static text; servers_stop() is needed all the
 * same. */
bool servers_start(struct core *core, const char *url, const char **ret_error) MUST_CHECK;

/* End the topology, when no thread connects any more.  Harmless if there is none. */
void servers_stop(struct core *core);

/* How often it has changed which servers have partitions, or are reached; 0: one Redis. */
unsigned servers_changes(const struct core *core);

/* Have @fd, an eventfd, written to at each such change, until servers_unwatch().  Harmless for one
 * Redis.  False: out of memory. */
bool servers_watch(struct core *core, int fd) MUST_CHECK;
void servers_unwatch(struct core *core, int fd);

/* Number the servers that have partitions, from 0: ret_server[p] is the number of partition p's.
 * Returns how many servers there are. */
#define SERVER_NOBODY SLOT_MAP_NOBODY /* the server of a partition that is nobody's now */
unsigned servers_number(struct core *core, uint16_t ret_server[PARTITIONS_MAX]) MUST_CHECK;

/* One partition of each server that has any.  False: some partition has no known server now, so a
 * server may be missing in *ret. */
bool servers_each(struct core *core, struct part_set *ret) MUST_CHECK;

/* With several servers: append to the text in @detail, of @detail_n bytes, which server is away.
 * Harmless if all are there, or if there is one. */
void servers_blame(struct core *core, char *detail, size_t detail_n);

/* A server that has been away for so long is not waited for any more: what needs that server is
 * refused at once, and a start goes on without it. */
#define SERVER_PATIENCE_MS 1000

/* For how many ms no server has served @partition, as far as is known; 0: it is served.  Else @why,
 * of @why_n bytes, names a server, or is "". */
int64_t server_away_ms(struct core *core, unsigned partition, char *why, size_t why_n);

/* Write the address of the server that has @partition, ADDRESS_TEXT_SIZE bytes at most, with its
 * NUL; "" if no server has it. */
void server_name(struct core *core, unsigned partition, char *name, size_t name_n);

/* A number that is the same for partitions of one server, and hardly ever for those of two. */
uint64_t server_hash(struct core *core, unsigned partition);

/* ---- a connection ---- */

/* Find the server that @server means, and how to connect to it.  False: it is not known now, and
 * @error, of @error_n bytes, says why. */
bool server_find(struct core *core, struct server *server, struct redis_endpoint *ret_endpoint,
    char *error, size_t error_n) MUST_CHECK;

/* Is the other end of @redis the server that was found, and does it still have the partition?  Asks
 * over @redis, which was just connected, until @deadline_ms (CLOCK_MONOTONIC).  False: @error says
 * why not. */
bool server_prove(struct core *core, struct server *server, struct redis *redis,
    int64_t deadline_ms, char *error, size_t error_n) MUST_CHECK;

/* Does the connection still lead to the server that has the partition or, if the node is named, to
 * one that owns any partition?  Costs next to nothing. */
bool server_is_current(const struct core *core, struct server *server);

/* Tell the topology what a thread has met, so that it looks at the server.  Harmless for one Redis.
 */
void server_lost(struct core *core, const struct server *server);   /* refused, closed or reset */
void server_silent(struct core *core, const struct server *server); /* nothing comes for long */
void server_stands(struct core *core, const struct server *server); /* it is connected and proved */

/* The server has answered a command about @partition with the error @reply.  The topology is told
 * what the error says of the partition's owner (MOVED, CLUSTERDOWN, READONLY, MASTERDOWN).  A
 * server that has said MOVED does not count as lost when its session is given up for that. */
void server_refused(
    struct core *core, struct server *server, unsigned partition, const struct reply *reply);

#endif
