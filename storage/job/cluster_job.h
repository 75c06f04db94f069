/* cluster_job.h - which servers have the data, and how they are.
 *
 * Layer: storage, public: plain values.
 */
#ifndef STORAGE_JOB_CLUSTER_JOB_H
#define STORAGE_JOB_CLUSTER_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLUSTER_REPLICAS_MAX 8   /* replicas of a server that are listed */
#define CLUSTER_LISTED_MAX   16  /* slots and partitions that are listed */
#define CLUSTER_ADDRESS      266 /* bytes that hold an address and a NUL */

struct cluster_replica {
    char address[CLUSTER_ADDRESS];
    bool is_online;
    int64_t lag_bytes; /* what the replica has not received of its server's writes, if known */
    int64_t lag_s;     /* since the replica was heard of last; -1: not known */
};

/* A slot that is being moved; until that ends, writes to its partitions wait. */
struct cluster_open_slot {
    unsigned slot;
    bool leaves; /* the slot leaves this server; false: it comes to this server */
};

/* A server that has partitions. */
struct cluster_server {
    char address[CLUSTER_ADDRESS];
    char id[41]; /* a cluster's node id; without a cluster the id of the server's run, or "" */
    unsigned n_partitions, n_slots;
    bool is_answering;
    struct cluster_replica replicas[CLUSTER_REPLICAS_MAX];
    unsigned n_replicas; /* how many of `replicas` are filled */
    struct cluster_open_slot open[CLUSTER_LISTED_MAX];
    unsigned n_open; /* how many of `open` are filled */
};

enum cluster_kind { CLUSTER_OF_ONE, CLUSTER_OF_SENTINELS, CLUSTER_OF_NODES };

/* Result of STORAGE_CLUSTER.  Release with storage_job_release(). */
struct cluster_job {
    enum cluster_kind kind;
    unsigned ack_replicas;
    unsigned n_partitions;
    unsigned n_unserved;                    /* partitions whose server is away, or not known */
    unsigned n_stateless;                   /* partitions that should have a state and have none */
    uint16_t stateless[CLUSTER_LISTED_MAX]; /* the first of these partitions */
    struct cluster_server *servers;         /* owned */
    size_t n_servers;
};

/* Write the piece of advice number @i, from 0 on, on what @job shows: a sentence, to @text, cut to
 * @room bytes.  False: there are no more than @i pieces. */
bool cluster_advice(const struct cluster_job *job, size_t i, char *text, size_t room);

/* "ok": no advice is to be given.  "degraded": there is advice, and some server answers.  "down":
 * no server answers.  The text is static. */
const char *cluster_state_text(const struct cluster_job *job);

#endif
