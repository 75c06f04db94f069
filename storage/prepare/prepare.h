/* prepare.h - is this Redis ours, and does it hold what this process expects?
 *
 * Layer: storage.  Not thread-safe: the writer's thread alone prepares.
 *
 * The writer connects first of all threads, and prepares the Redis before anything is written:
 *
 *     the server        must be new enough and must not evict keys;
 *                       how much it may forget is learnt (durability.h)
 *     replicas          must be there, as many as are to acknowledge a request; at the start only
 *     the schema        and the number of partitions must be ours; until here nothing is written
 *     the data set      must be that of the secret in all partitions, and the same as before
 *     the secret        is made, or learnt
 *     each partition    gets its first state if it is empty; otherwise its state is learnt.  In a
 *                       cluster only at the first start: the key `made` says that it is over, and
 *                       from then on a partition without a state has lost it
 *
 * The keep times and the zones of sites are kept with the data, and may differ from this process's.
 * A process that has just started puts its own settings in their place, but a site that has data
 * keeps its zone.  Later the process refuses to serve instead: otherwise two processes would undo
 * each other's settings for ever.
 *
 * If a primary of a cluster is away, the cluster is prepared without the partitions of that one.
 * That is not done at the first start, nor without partition 0's server, which has the secret and
 * the clock.  When all primaries are there again, the rest is prepared.  If partition 0's server
 * comes back empty, a process that runs gives it the secret and `made` back.
 */
#ifndef STORAGE_PREPARE_PREPARE_H
#define STORAGE_PREPARE_PREPARE_H

#include "storage/base/compiler.h"
#include "storage/schema/part_set.h"
#include "storage/schema/settings.h"
#include "storage/session/session.h"

#define REPLACED_MAX 4

/* What a process knows of the data that it has prepared.  Zeroed: nothing yet. */
struct prepared_data {
    /* Partitions that had this process's settings once.  Settings that come in their place later
     * are those of another process, and are not replaced. */
    struct part_set settled;
    bool has_made;   /* in a cluster: all partitions had their states once */
    unsigned n_away; /* partitions that were left out the last time: their server was away */
    int64_t few_replicas_ms; /* when too few replicas were first seen; 0: never */
    /* Other settings that were replaced.  They may come back with restored data; then they are
     * replaced again. */
    unsigned n_replaced;
    struct {
        char cfg[SETTINGS_TEXT];
        unsigned times; /* how often they were replaced */
    } replaced[REPLACED_MAX];
};

/* Prepare the Redis of @session, which has just been opened, by @deadline_ms (CLOCK_MONOTONIC); of
 * a cluster the data of all partitions whose servers are there, by the session's dispatcher.
 * @is_first: the process has just started.  False: session->why, and the session must be closed.
 * core_refuses() then says whether trying again is of use. */
bool session_prepare(struct session *session, struct core *core, struct prepared_data *known,
    bool is_first, int64_t deadline_ms) MUST_CHECK;

/* Check that the server of @session, which has just been opened, is fit to have data, and learn how
 * much it may forget.  In a cluster the data is not prepared again for nodes that come later.
 * False as above. */
bool session_check(struct session *session, struct core *core, int64_t deadline_ms) MUST_CHECK;

#endif
