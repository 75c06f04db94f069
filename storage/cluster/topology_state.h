/* topology_state.h - the inside of a topology, for the files that keep it.
 *
 * Layer: storage, private to topology.c, cluster_round.c and sentinel_round.c.
 */
#ifndef STORAGE_CLUSTER_TOPOLOGY_STATE_H
#define STORAGE_CLUSTER_TOPOLOGY_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "storage/cluster/map_choice.h"
#include "storage/cluster/sentinels.h"
#include "storage/schema/partition.h"

#define ASK_MS 300 /* how long all questions of one ask() may take */

/* What a round has left. */
enum round_end {
    ROUND_SETTLED, /* nothing is left to ask, as far as this round could see */
    ROUND_OPEN,    /* some question must be asked again soon */
};

struct topology {
    struct redis_url url;
    unsigned n_partitions;
    const struct topology_io *io;
    void *io_data;
    int *watchers; /* an owned array of eventfds, which belong to others */
    size_t n_watchers, watchers_room;
    _Atomic unsigned n_changes;
    int wake_fd; /* eventfd: ends the thread's sleep */

    _Atomic unsigned version;
    _Atomic unsigned n_unserved;
    _Atomic unsigned n_replicas; /* replicas that the Sentinels know of the master they name */
    atomic_bool stopping;

    pthread_mutex_t lock;                /* a leaf; guards what follows up to `trouble` */
    struct slot_map map;                 /* owned; its n_partitions is the topology's */
    int64_t unserved_ms[PARTITIONS_MAX]; /* since when a partition is not served; 0: it is served */
    bool hinted;                         /* a hint has come since the last round began */
    bool corrected; /* a MOVED has corrected the map since the last round began */
    char trouble[TROUBLE_SIZE];

    /* What follows belongs to the thread. */
    pthread_t thread;
    bool running;
    bool hint_seen;      /* the next round is because of a hint */
    int64_t last_ms;     /* when the last round began; INT64_MIN / 2: none has */
    int64_t next_ms;     /* when the next round is due */
    int64_t troubled_ms; /* since when rounds have ended with ROUND_OPEN; 0: the last did not */
    struct map_choice choice;
    struct sentinels sentinels;
    unsigned turn_doubted, turn_known, turn_seed;
    struct redis_address heard[REDIS_SEEDS_MAX]; /* nodes to ask while there is no map */
    size_t n_heard;
};

/* Put @map into place.  Afterwards *map is the map that was there before, which the caller
 * releases.  A node in doubt that is in both maps stays in doubt.  With the lock held. */
void topology_put(struct topology *topology, struct slot_map *map);

/* Set whether @node is in doubt; a node that owns no partition never is.  With the lock held. */
void topology_doubt(struct topology *topology, struct cluster_node *node, bool doubted);

/* Remember why partitions are not served; the text is cut to fit.  With the lock held. */
void topology_blame(
    struct topology *topology, const struct redis_address *address, const char *error);

/* One round: ask and take the answers.  Called without the lock. */
enum round_end cluster_round(struct topology *topology, bool troubled);
enum round_end sentinel_round(struct topology *topology, bool troubled);

#endif
