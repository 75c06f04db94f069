/* prepare_state.h - a Redis that is being prepared.
 *
 * Layer: storage, private to prepare.c (what is written and learnt), prepare_data_set.c (whose data
 * it is), prepare_server.c and prepare_replicas.c (what the servers are like).
 */
#ifndef STORAGE_PREPARE_PREPARE_STATE_H
#define STORAGE_PREPARE_PREPARE_STATE_H

#include "storage/prepare/moved_zones.h"
#include "storage/schema/part_set.h"
#include "storage/session/asks.h"
#include "storage/session/session.h"

struct prepared_data;

struct preparation {
    struct core *core;
    struct session *session;
    int64_t deadline_ms;
    struct prepared_data *known;
    bool is_first; /* the process has just started */
    char meta[64]; /* "schema=8 partitions=16" */
    struct secret secret;
    struct changed {
        bool is;
        struct slice cfg, st; /* copies in one block, owned */
        struct retention retention;
    } changed[PARTITIONS_MAX];
    unsigned n_changed;
    bool has_aof;
    bool is_made;            /* in a cluster: all partitions had their states once */
    bool has_made;           /* the key `made` says so; if not, the process knows from before */
    struct zone_moves moves; /* of the sites in the partitions that changed */

    /* In a cluster: partitions whose servers have been away for a while.  They are left out. */
    struct part_set away;
    unsigned n_away;
    char why_away[ADDRESS_TEXT_SIZE + 32]; /* names one of the servers */
    uint16_t asked[PARTITIONS_MAX];        /* partitions in the order in which they are asked */

    char few_replicas[ADDRESS_TEXT_SIZE + 64]; /* which server has too few, for a while; "": none */
};

/* Whose data is it?  Reads the secret, `made` and all data sets before anything is written; then
 * meta and the secret are written where there are none, and the secret is published. */
bool prepare_data_set(struct preparation *p) MUST_CHECK;

/* Is the data of a cluster ours?  Learns the clock, too.  Writes nothing to Redis. */
bool prepare_cluster(struct preparation *p) MUST_CHECK;

/* At the start: has each server as many replicas as must acknowledge a request?  A server that has
 * not is asked again for 5 s.  If it has too few then, it is refused, unless a replica is known
 * that is away: p->few_replicas names the server.  If no replica must acknowledge, and one may take
 * over, operators are told what a failover can lose.  Writes nothing to Redis. */
bool prepare_replicas(struct preparation *p) MUST_CHECK;

/* Append the command that sets `made`: all partitions had their states once. */
void preparation_put_made(const struct preparation *p, struct asks *asks);

/* Copy @text to p->session->why.  Returns false. */
bool preparation_complain(struct preparation *p, const char *text);

/* The same for a reply that is an error, or that has not the form of an answer. */
bool preparation_not_ours(struct preparation *p, const struct reply *reply);

/* The same, and refuse to serve: the server or its data is not ours, and waiting does not help. */
bool preparation_refuse(struct preparation *p, const char *text);

/* The same for data of another installation. */
bool preparation_refuse_foreign(struct preparation *p, const char *text);

/* The same for data whose meta is @theirs, with a NUL somewhere behind.  @what is the sentence to
 * use if @theirs is no meta at all.  No version converts the data of another one. */
bool preparation_refuse_meta(struct preparation *p, struct slice theirs, const char *what);

/* Send @asks, and hand each reply to @take with @p.  False: the connection was lost, or @take has
 * returned false. */
bool preparation_ask(struct preparation *p, struct asks *asks, redis_take_fn *take) MUST_CHECK;

/* Is this a Redis for us, and, where one server has all, its data?  Writes nothing to Redis. */
bool prepare_server(struct preparation *p) MUST_CHECK;

#endif
