/* fake_cluster.h - a cluster, a clock and dice in the test's hand, behind a struct topology_io.
 *
 * Each node of the fake has a view of its own, which the test sets: whether the node answers, what
 * it says of itself, and whom it believes to own each partition.
 */
#ifndef TESTS_UNIT_STORAGE_CLUSTER_FAKE_CLUSTER_H
#define TESTS_UNIT_STORAGE_CLUSTER_FAKE_CLUSTER_H

#include "storage/cluster/topology.h"

#define FAKE_NODES      64
#define FAKE_PARTITIONS 6
#define FAKE_ASKED      4096

struct fake_node {
    const char *host; /* port 6379 */
    char id[CLUSTER_ID_SIZE];
    int cluster;        /* nodes know those of the same cluster only */
    bool silent, fails; /* does not answer at all; says cluster_state:fail */
    int64_t current_epoch, my_epoch;
    int owner[FAKE_PARTITIONS]; /* as this node believes; -1: nobody */
};

struct fake {
    struct fake_node nodes[FAKE_NODES];
    int n;
    int64_t now_ms;
    uint32_t dice;              /* what random() returns */
    void (*while_asking)(void); /* called in the middle of a round; NULL */

    int asked[FAKE_ASKED]; /* nodes in the order of being asked; -1: no such node */
    size_t n_asked, n_rounds;
    int64_t began_ms[FAKE_ASKED]; /* when each round began */
    size_t most_at_once;

    struct topology *topology;
    unsigned changes; /* of the topology, that fake_event() has told */
};

extern struct fake fake;

/* A cluster of n nodes named "n0", "n1", ..: three primaries with two partitions each, or as many
 * as there are, in agreement.  The topology knows only the seeds of @url. */
void fake_start(int n, const char *url);
void fake_stop(void);

/* Let every node believe that @node owns the partition, at this epoch. */
void fake_set_owner(int partition, int node, int64_t epoch);

/* Step through the rounds that come due until @ms from now. */
void fake_run(int64_t ms);

/* Forget what was asked so far. */
void fake_forget(void);

/* Was the node asked since? */
bool fake_was_asked(int node);

/* The partitions' owners by host, '-' for nobody, as "n0 n0 n1 n1 n2 n2". */
void fake_expect_owners(const char *wanted);

/* Tell a hint about a node. */
void fake_hint(enum topology_hint hint, int partition, const char *host);

/* Has the event descriptor something to read?  Reads it. */
bool fake_event(void);

#endif
