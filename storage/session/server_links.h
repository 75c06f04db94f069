/* server_links.h - connections to the servers of many partitions, and since when they stand.
 *
 * Layer: storage.  Belongs to one thread, the dispatcher's.
 *
 * Each server has one link for groups in order, and one aside for groups that are waited for at
 * once (dispatcher.h).  A link is made when it is first needed, and lives as long as the links do:
 * when its connection is lost, the link gets a new one.
 */
#ifndef STORAGE_SESSION_SERVER_LINKS_H
#define STORAGE_SESSION_SERVER_LINKS_H

#include "storage/session/session.h"

struct server_link {
    struct server_link *next;
    bool is_aside;
    bool is_spent; /* nothing new is sent over the link: its scripts are gone */
    struct session session;
    size_t n_awaited; /* replies to groups that are still waited for */
    size_t n_skipped; /* replies that come before those, to be dropped */
    struct buffer out;
};

struct server_links {
    struct core *core;
    struct redis_look look;    /* of the thread, for its connections */
    struct server_link *first; /* owned */
    /* Grows with each event after which a group may go to another server than the group before. */
    uint64_t changes;
    /* CLOCK_MONOTONIC: what was read from servers since then they have not lost by going back, as
     * far as connections tell.  Moved on by a connection that is lost or made, by a MOVED, and by
     * another owner of any partition; not by an ASK: a slot that is moved loses nothing. */
    int64_t stood_us;
    unsigned version;                          /* of the topology, at the last look */
    struct server_link *owner[PARTITIONS_MAX]; /* of each partition; NULL: not looked up yet */
};

/* Make links, where core->topology is not NULL.  @core and what @look points to outlive them. */
void server_links_init(
    struct server_links *links, struct core *core, const struct redis_look *look);
void server_links_release(struct server_links *links);

/* If partitions have other owners than at the last call, note that, and look the owners up anew. */
void server_links_note_owners(struct server_links *links);

/* Note that servers may be others than before, or may have gone back. */
void server_links_note_change(struct server_links *links);

/* The link to @node, with a connection that stands.  Where there is none, connects within a second
 * and by @deadline_ms (CLOCK_MONOTONIC).  NULL: there is no connection, or what was asked over the
 * lost one must be given up first. */
struct server_link *server_links_to(struct server_links *links, const struct cluster_node *node,
    bool is_aside, int64_t deadline_ms) MUST_CHECK;

/* The same for groups in order, to the owner of @partition.  NULL: as above, or there is no owner
 * now. */
struct server_link *server_links_of(
    struct server_links *links, unsigned partition, int64_t deadline_ms) MUST_CHECK;

/* Send what is in link->out, and empty it.  False: the connection is of no use any more; if memory
 * was short it is closed. */
bool server_link_flush(struct server_link *link);

/* Close the connection of @link; what was asked over it is not answered any more. */
void server_link_leave(struct server_link *link);

#endif
