/* sentinels.h - the Sentinels that are known, and the master that they name.
 *
 * Layer: storage, pure.  Not thread-safe.
 *
 * The Sentinels are those of the URL and those that the last believed one knows, at most 16.  Of
 * several answers the one with the highest config-epoch is believed: a Sentinel in a minority still
 * names the old master.  The epoch grows with each failover.  A master of a lower epoch, or another
 * one of the same epoch, is believed only if a majority of the Sentinels names it: then an operator
 * has told them of a new master by hand.
 */
#ifndef STORAGE_CLUSTER_SENTINELS_H
#define STORAGE_CLUSTER_SENTINELS_H

#include "storage/cluster/question.h"

struct sentinels {
    struct redis_address addresses[REDIS_SEEDS_MAX];
    size_t n, n_seeds; /* the first n_seeds are of the URL */
    unsigned turn;
    bool known;    /* a master has been named */
    bool ask_all;  /* ask all Sentinels: they disagree, or none has answered */
    int64_t epoch; /* config-epoch of the answer that is believed */
    struct redis_address master;
    unsigned n_replicas;         /* of the master, also those that are away */
    struct redis_address listen; /* the Sentinel to listen to; host "": none */
};

void sentinels_init(struct sentinels *sentinels, const struct redis_url *url);

/* Write questions to the Sentinels that are to be asked now: two by turns, or all while no master
 * is known or they disagree.  @ret has room for REDIS_SEEDS_MAX.  Returns how many. */
size_t sentinels_ask(struct sentinels *sentinels, struct question *ret);

/* Take the answers.  Returns how many Sentinels have answered. */
size_t sentinels_take(struct sentinels *sentinels, const struct question *questions, size_t n);

/* A Sentinel that answered last time; NULL: none did. */
const struct redis_address *sentinels_listen(const struct sentinels *sentinels);

#endif
