/* cluster_job.h - which servers have the data, and how they are.
 *
 * Layer: storage, public: plain values.
 */
#ifndef STORAGE_JOB_CLUSTER_JOB_H
#define STORAGE_JOB_CLUSTER_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLUSTER_REPLICAS_MAX 8   /* of a server, that are listed */
#define CLUSTER_LISTED_MAX   16  /* slots and partitions that are listed */
#define CLUSTER_ADDRESS      266 /* bytes that hold an address and a NUL */

struct cluster_replica {
    char address[CLUSTER_ADDRESS];
    bool is_online;
    int64_t lag_bytes; /* what its server has written and it has not received, as far as is known */
    int64_t lag_s;     /* since it was heard of; -1: not known */
};

/* A slot that is being moved; until that ends, writes to its partitions wait. */
struct cluster_open_slot {
    unsigned slot;
    bool leaves; /* or comes */
};

/* A server that has partitions. */
struct cluster_server {
    char address[CLUSTER_ADDRESS];
    char id[41]; /* of a node of a cluster; else of the run, or "" */
    unsigned n_partitions, n_slots;
    bool is_answering;
    struct cluster_replica replicas[CLUSTER_REPLICAS_MAX];
    unsigned n_replicas; /* of those listed */
    struct cluster_open_slot open[CLUSTER_LISTED_MAX];
    unsigned n_open; /* of those listed */
};

enum cluster_kind { CLUSTER_OF_ONE, CLUSTER_OF_SENTINELS, CLUSTER_OF_NODES };

/* Result of STORAGE_CLUSTER.  Release with storage_job_release(). */
struct cluster_job {
    enum cluster_kind kind;
    unsigned ack_replicas;
    unsigned n_partitions;
    unsigned n_unserved; /* whose server is away, or not known */
    unsigned n_stateless;
    uint16_t
        stateless[CLUSTER_LISTED_MAX]; /* the first ones that should have a state and have none */
    struct cluster_server *servers;    /* owned */
    size_t n_servers;
};

/* Advice on what is seen, a sentence each: write that at @i, from 0 on, to @text, cut to @room
 * bytes.  False: there is none at @i. */
bool cluster_advice(const struct cluster_job *job, size_t i, char *text, size_t room);

/* "ok": all partitions are served and whole, and every server can acknowledge; "degraded": some;
 * "down": no partition is served. */
const char *cluster_state_text(const struct cluster_job *job);

#endif
