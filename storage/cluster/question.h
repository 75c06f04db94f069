/* question.h - what the topology asks other machines, and where it gets time and random numbers.
 *
 * Layer: storage, pure.
 *
 * All that the topology learns of the world comes through a struct topology_io.  asker.h has the
 * one that asks real servers; a test has one with a simulated cluster, clock and random numbers.
 */
#ifndef STORAGE_CLUSTER_QUESTION_H
#define STORAGE_CLUSTER_QUESTION_H

#include "storage/cluster/view.h"

enum question_kind {
    QUESTION_CLUSTER,  /* to a node: CLUSTER MYID, CLUSTER INFO, CLUSTER SLOTS */
    QUESTION_SENTINEL, /* to a Sentinel: SENTINEL MASTER name, SENTINEL SENTINELS name */
    QUESTION_ROLE,     /* to a server that may be the master: ROLE, INFO SERVER */
};

#define QUESTIONS_MAX       (REDIS_SEEDS_MAX + 1) /* questions of one ask() */
#define QUESTION_ERROR_SIZE 96
#define TROUBLE_SIZE        (ADDRESS_TEXT_SIZE + 2 + QUESTION_ERROR_SIZE) /* "host:port: why" */

struct question {
    enum question_kind kind;
    struct redis_address address;

    bool answered;                   /* the answer came whole and in time */
    char error[QUESTION_ERROR_SIZE]; /* why there is no answer, if there is none */
    union {
        struct cluster_view cluster; /* its map is owned by the code that asked */
        struct sentinel_view sentinel;
        struct role_view role;
    };
};

struct topology_io {
    /* Milliseconds of a clock that never goes back.  Called from any thread. */
    int64_t (*now_ms)(void *data);

    /* A random number. */
    uint32_t (*random)(void *data);

    /* Ask all @n questions at once, each of another address, and wait for the answers until
     * @deadline_ms.  Sets `answered` of each, and the view or `error`. */
    void (*ask)(void *data, struct question *questions, size_t n, int64_t deadline_ms);

    /* Sleep until @until_ms or until @wake_fd can be read.  Meanwhile be subscribed to what the
     * Sentinel at @listen says of failovers; NULL: to none.  True: the Sentinel has spoken. */
    bool (*wait)(void *data, int wake_fd, const struct redis_address *listen, int64_t until_ms);

    /* From now on let ask() and wait() end soon.  Called from any thread. */
    void (*interrupt)(void *data);
};

#endif
