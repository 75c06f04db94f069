/* prepare.h - is this Redis ours, and does it hold what this process expects?
 *
 * Layer: storage.  Not thread-safe: the writer's thread alone prepares.
 *
 * The writer connects first of all threads, and prepares the Redis before anything is written:
 *
 *     the server        must be new enough and must not evict keys
 *                       how much it may forget is learnt (durability.h)
 *     replicas          must be there, as many as are to acknowledge a request; at the start only
 *     the schema        and the number of partitions must be ours; until here nothing is written
 *     the secret        is made, or learnt
 *     each partition    gets its first state if it is empty; otherwise its state is learnt.  In a
 *                       cluster only at the first start: the key `made` says that it is over, and
 *                       from then on a partition without a state has lost it
 *
 * The keep times and the zones of sites are kept with the data, and may differ from this process's.
 * A process that has just started puts its own in their place; but a site that has data keeps its
 * zone.  Later it refuses to serve instead: otherwise two processes would undo each other's
 * settings for ever.
 */
#ifndef STORAGE_CORE_PREPARE_H
#define STORAGE_CORE_PREPARE_H

#include "storage/base/compiler.h"
#include "storage/core/session.h"
#include "storage/schema/settings.h"

/* Other settings that this process has replaced by its own.  They may come back with restored data;
 * then they are replaced again.  Zeroed: none yet. */
#define REPLACED_MAX 4
struct replaced_settings {
    unsigned n;
    struct {
        char cfg[SETTINGS_TEXT];
        unsigned times; /* that they were replaced */
    } settings[REPLACED_MAX];
};

/* Prepare the Redis of @session, which has just been opened, by @deadline_ms (CLOCK_MONOTONIC); of
 * a cluster the data of all partitions, by the session's dispatcher.
 * @adopt: the process has just started, and may replace settings that differ.  False: @error, of
 * @error_n bytes, says why, and the session must be closed.  core->settings_differ is then set if
 * trying again is of no use. */
bool session_prepare(struct session *session, struct core *core, struct replaced_settings *replaced,
    bool adopt, int64_t deadline_ms, char *error, size_t error_n) MUST_CHECK;

/* Is the server of @session, which has just been opened, a node for us?  Learns how much it may
 * forget.  Of a cluster: what the start has prepared holds, whatever nodes come later.  False as
 * above. */
bool session_check(struct session *session, struct core *core, int64_t deadline_ms, char *error,
    size_t error_n) MUST_CHECK;

#endif
