/* dispatcher.h - commands to the servers of many partitions, and their replies in order.
 *
 * Layer: storage.  Belongs to one thread.
 * Source: the Redis Cluster specification, "Redirection and resharding" (redis.io).
 *
 * Commands for one partition that belong together are a group.  Groups are begun one after the
 * other, sent with one write a server, and answered in the order in which they were begun,
 * whichever server answers first.
 *
 * If a server of a cluster refuses a group with one of these errors, nothing of the group was done.
 * So the group is sent elsewhere, or again, until the deadline:
 *
 *     MOVED                       the topology is told; the group goes to the node that was named
 *     ASK                         the group goes to the node that was named, once, behind ASKING;
 *                                 a DISPATCH_READS of several commands waits as after TRYAGAIN
 *     TRYAGAIN                    the slot is being moved: the group goes again, 20 to 200 ms later
 *     CLUSTERDOWN LOADING         the group goes again, as late
 *     READONLY MASTERDOWN         the server is a replica now: the group goes to the new primary
 *                                 when that one is known
 *     NOSCRIPT                    the group goes over a new connection, on which scripts are loaded
 *     no owner is known           the group goes when the topology knows an owner
 *     the connection is lost      REDIS_LOST: the caller knows whether it may ask again
 *
 * A group that goes elsewhere uses a connection beside the one for groups in order, and is waited
 * for at once.  So it does not get between the replies that other groups wait for.
 */
#ifndef STORAGE_SESSION_DISPATCHER_H
#define STORAGE_SESSION_DISPATCHER_H

#include "storage/session/server_links.h"

/* How the commands of a group belong together. */
enum dispatcher_kind {
    DISPATCH_SINGLE, /* one command */
    /* MULTI .. EXEC.  One reply is handed out: EXEC's, or the first error among the replies. */
    DISPATCH_MULTI,
    /* Commands that only read, and that one server must carry out in this order over one
     * connection.  One reply is handed out: an array of all, or the first error among them. */
    DISPATCH_READS,
    /* Commands that one server must carry out in this order, without others between that matter.
     * Each reply is handed out.  A group that is to go elsewhere ends with REDIS_LOST. */
    DISPATCH_ORDERED,
};

struct dispatcher_group;

struct dispatcher {
    struct core *core;
    struct server_links links;
    struct dispatcher_group *groups; /* owned; first.. are not answered yet */
    size_t first, n, capacity;
    size_t seen;         /* dispatcher_send() has looked at the groups before this number */
    struct buffer bytes; /* of the groups that are not answered; emptied when all are */
    char error[128];     /* the text of an error that is handed out for several replies */
    struct reply error_reply;
    bool is_refused; /* the await that failed last: nothing of its group was done */

    /* See dispatcher_record(). */
    bool records, has_recorded, has_strayed;
    int64_t recorded_us;                          /* the end of the recording */
    struct server_link *answered[PARTITIONS_MAX]; /* by partition: who answered; NULL: nobody */
};

/* Since when, by CLOCK_MONOTONIC, all connections of @session stand: its own, or all those of its
 * dispatcher. */
static inline int64_t session_stands_since(const struct session *session)
{
    return session->dispatcher != NULL ? session->dispatcher->links.stood_us : session->opened_us;
}

/* Make a dispatcher, where core->topology is not NULL.  @core and what @look points to outlive the
 * dispatcher. */
void dispatcher_init(
    struct dispatcher *dispatcher, struct core *core, const struct redis_look *look);
void dispatcher_release(struct dispatcher *dispatcher);

/* Begin a group for @partition: the caller appends its commands (resp.h) to the buffer that is
 * returned, and ends the group with the number of their replies.  False: out of memory, and the
 * group is as if it had not been begun. */
struct buffer *dispatcher_begin(
    struct dispatcher *dispatcher, unsigned partition, enum dispatcher_kind kind);
bool dispatcher_end(struct dispatcher *dispatcher, size_t n_replies) MUST_CHECK;

/* Send all groups that were ended.  Connects where there is no connection, within @deadline_ms
 * (CLOCK_MONOTONIC).  What cannot be sent now is sent by dispatcher_await(). */
void dispatcher_send(struct dispatcher *dispatcher, int64_t deadline_ms);

/* The same, but only if `links.changes` is still @changes when the servers of the groups are known.
 * False: the number has changed, so a server may be another one than before, or may have gone back.
 * Then nothing was sent, and all groups that are not answered are given up. */
bool dispatcher_send_unchanged(
    struct dispatcher *dispatcher, uint64_t changes, int64_t deadline_ms) MUST_CHECK;

/* Wait for the next reply, in the order of the groups, until @deadline_ms (CLOCK_MONOTONIC).  *ret
 * is valid until the next call.  After any other status than REDIS_OK_STATUS the groups are given
 * up, and the dispatcher can be used anew. */
enum redis_status dispatcher_await(
    struct dispatcher *dispatcher, int64_t deadline_ms, const struct reply **ret) MUST_CHECK;

/* Give up all groups that are not answered: their replies are read and dropped later. */
void dispatcher_forget(struct dispatcher *dispatcher);

/* Close the connections that their servers have closed while nothing was awaited. */
void dispatcher_close_dead(struct dispatcher *dispatcher);

/* From dispatcher_record() to dispatcher_recorded() the dispatcher notes which server answers for
 * each partition.  From then on `has_strayed` tells whether an answer for a partition came from
 * another server, or over a connection that was made later: that server may have gone back behind
 * what was recorded.  An answer behind ASKING does not count as such: a slot that is moved loses
 * nothing. */
void dispatcher_record(struct dispatcher *dispatcher);
void dispatcher_recorded(struct dispatcher *dispatcher);

#endif
