/* server_links.h - connections to the servers of many partitions, and since when they stand.
 *
 * Layer: storage.  Belongs to one thread, the dispatcher's.
 *
 * To each server there is one link for groups in order, and one aside for groups that are waited
 * for at once (dispatcher.h).  A link is made when it is needed first, and lives as long as the
 * links do: when its connection is lost, the next one is made in its place.
 */
#ifndef STORAGE_CORE_SERVER_LINKS_H
#define STORAGE_CORE_SERVER_LINKS_H

#include "storage/core/session.h"

struct server_link {
    struct server_link *next;
    bool is_aside;
    bool is_spent; /* nothing new goes there: its scripts are gone */
    struct session session;
    size_t n_awaited; /* replies to groups that are still of interest */
    size_t n_skipped; /* replies that come before those, and are of none */
    struct buffer out;
};

struct server_links {
    struct core *core;
    struct redis_look look;    /* of the thread, for its connections */
    struct server_link *first; /* owned */
    /* Grows with all that may have brought a group to another server than the group before. */
    uint64_t changes;
    /* CLOCK_MONOTONIC: what was read since then was read from servers that have not gone back
     * since, as far as connections tell.  Moved on by a connection that is lost or made, by a
     * MOVED, and by another owner of any partition; not by an ASK: a slot that is moved loses
     * nothing. */
    int64_t stood_us;
    unsigned version;                          /* of the topology, at the last look */
    struct server_link *owner[PARTITIONS_MAX]; /* by that version; NULL: not looked up yet */
};

/* Only where core->topology is not NULL. */
void server_links_init(
    struct server_links *links, struct core *core, const struct redis_look *look);
void server_links_release(struct server_links *links);

/* If partitions have other owners than at the last call, note that, and look the owners up anew. */
void server_links_note_owners(struct server_links *links);

/* Servers may be others than before, or may have gone back. */
void server_links_note_change(struct server_links *links);

/* The link to @node, with a connection that stands.  Where there is none, connects within a second
 * and by @deadline_ms (CLOCK_MONOTONIC).  NULL: it cannot be had; or what is asked over it must be
 * given up first. */
struct server_link *server_links_to(struct server_links *links, const struct cluster_node *node,
    bool is_aside, int64_t deadline_ms) MUST_CHECK;

/* The same for groups in order to the partition's owner; NULL: none now. */
struct server_link *server_links_of(
    struct server_links *links, unsigned partition, int64_t deadline_ms) MUST_CHECK;

/* Send what is in `out`, which is emptied.  False: the connection is of no use any more; where
 * memory was short it is closed. */
bool server_link_flush(struct server_link *link);

/* Close the connection; what was asked over it is not answered any more. */
void server_link_leave(struct server_link *link);

#endif
