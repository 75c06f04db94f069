/* prepare.h - is this Redis ours, and does it hold what this process expects?
 *
 * Layer: storage.  What one thread does after it has connected, before anything is written: the
 * writer's.
 *
 * The server must be new enough and must not evict keys.  The schema and the number of partitions
 * must be ours.  The secret is made, or learnt.  Empty partitions get their first state, and the
 * state of the others is learnt.
 *
 * Settings that are kept with the data may differ from this process's (retention, zones of sites
 * without data).  A process that has just started puts its own in their place; otherwise it refuses
 * to serve, so that two processes do not undo each other's for ever.
 */
#ifndef STORAGE_CORE_PREPARE_H
#define STORAGE_CORE_PREPARE_H

#include "storage/base/compiler.h"
#include "storage/core/session.h"
#include "storage/schema/settings.h"

/* Settings that this process has put its own in place of.  Where they come back (data restored, or
 * gone back in time) they are replaced again.  Zeroed: none yet.  One owner. */
#define REPLACED_MAX 4
struct replaced_settings {
    unsigned n;
    struct {
        char cfg[SETTINGS_TEXT];
        unsigned times;
    } settings[REPLACED_MAX];
};

/* @adopt: the process has just started, and may replace what differs.  False: @error says why, and
 * the session must be closed; core->settings_differ says whether coming again is of no use. */
bool session_prepare(struct session *session, struct core *core, struct replaced_settings *replaced,
    bool adopt, int64_t deadline_ms, char *error, size_t error_n) MUST_CHECK;

#endif
