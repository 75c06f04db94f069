/* view.h - what a node, a server or a Sentinel says of itself and of others, read from its replies.
 *
 * Layer: storage, pure.  Thread-safe for different views.
 */
#ifndef STORAGE_CLUSTER_VIEW_H
#define STORAGE_CLUSTER_VIEW_H

#include "storage/cluster/slot_map.h"
#include "storage/redis/url.h"

/* ---- a node of a cluster ---- */

struct cluster_view {
    char id[CLUSTER_ID_SIZE]; /* the node's own: CLUSTER MYID */
    bool ok;                  /* it says cluster_state:ok */
    int64_t current_epoch,
        my_epoch;        /* the highest that the node knows; its own, or its primary's */
    struct slot_map map; /* owned */
};

/* Read the reply to CLUSTER MYID, and that to CLUSTER INFO.  False: the reply has another form. */
bool cluster_view_take_id(struct cluster_view *view, const struct reply *reply) MUST_CHECK;
bool cluster_view_take_info(struct cluster_view *view, const struct reply *reply) MUST_CHECK;

/* ---- a server that may be the master ---- */

struct role_view {
    bool is_master;
    char run_id[CLUSTER_ID_SIZE]; /* 40 hexadecimal digits, new with each start of the server */
};

/* Read the reply to ROLE, and that to INFO SERVER.  False: the reply has another form. */
bool role_view_take_role(struct role_view *view, const struct reply *reply) MUST_CHECK;
bool role_view_take_info(struct role_view *view, const struct reply *reply) MUST_CHECK;

/* ---- a Sentinel ---- */

struct sentinel_view {
    bool known;                                   /* the Sentinel knows a master of this name */
    struct redis_address master;                  /* as the Sentinel announces it */
    int64_t config_epoch;                         /* grows with each failover */
    unsigned n_replicas;                          /* of the master, also those that are away */
    struct redis_address others[REDIS_SEEDS_MAX]; /* the other Sentinels of this master */
    size_t n_others;
};

/* Read the reply to SENTINEL MASTER name.  An error reply means that the master is not known.
 * False: the reply has another form. */
bool sentinel_view_take_master(struct sentinel_view *view, const struct reply *reply) MUST_CHECK;

/* Read the reply to SENTINEL SENTINELS name.  An item that is no Sentinel with an address is left
 * out, and so are Sentinels for which `others` has no room. */
void sentinel_view_take_others(struct sentinel_view *view, const struct reply *reply);

#endif
