#include "storage/log/waiting.h"

#include <stdlib.h>
#include <string.h>

#include "storage/base/clock.h"
#include "storage/log/unfolded.h"

#define YOUNG_MS 2000 /* a site's deletion takes longer: AHEAD_MS of deletion/work.c */

void waiting_release(struct waiting *waiting)
{
    for (size_t i = 0; i < waiting->n; i++) {
        entry_release(waiting->entries[i]);
    }
    free(waiting->entries);
    *waiting = (struct waiting){0};
}

/* Has the first entry waited for so long that another process may have counted its events, and
 * deleted them with their site? */
static bool is_old(const struct waiting *waiting)
{
    return waiting->n > 0 &&
           monotonic_us() - waiting->entries[0]->acknowledged_us >= INT64_C(1000) * YOUNG_MS;
}

void waiting_take(struct waiting *ret, struct core *core, size_t most)
{
    *ret = (struct waiting){0};
    if (core->is_spread || atomic_load(&core->deletions.n) > 0) {
        return;
    }
    uint64_t last = unfolded_last(core->unfolded, 0, ret->id);
    (void)unfolded_take(core->unfolded, 0, last > most ? last - most : 0, SIZE_MAX, ret->id,
        &ret->entries, &ret->n);
    ret->last = unfolded_shown(core->unfolded, 0);
    if (is_old(ret)) {
        waiting_release(ret);
    }
}

/* Has @waiting all entries that the cursors lack of this process's log?  Entries behind
 * waiting->last were acknowledged later, if at all. */
static bool has_all(const struct waiting *waiting, const struct log_head *log)
{
    uint64_t next = log->counted + 1;
    uint64_t last = waiting->last < log->n ? waiting->last : log->n;
    for (size_t i = 0; i < waiting->n && next <= last; i++) {
        const struct log_entry *entry = waiting->entries[i];
        if (entry->n == next && strcmp(entry->era, log->era) == 0) {
            next++;
        }
    }
    return next > last;
}

/* Is everything counted but what @waiting has? */
static bool covers(const struct waiting *waiting, const struct log_progress *progress)
{
    for (size_t i = 0; i < progress->logs.n; i++) {
        const struct log_head *log = &progress->logs.all[i];
        bool is_own = strcmp(log->id, waiting->id) == 0;
        if (log->counted < log->n && (!is_own || !has_all(waiting, log))) {
            return false;
        }
    }
    return true;
}

enum storage_err waiting_await(
    const struct waiting *waiting, struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct core *core = reader->core;
    struct log_progress *progress = &reader->settled.progress;
    if (waiting->n > 0 && !settled_is_known(core, &reader->session, job)) {
        progress->remembers = false; /* the own log has grown, so read all cursors at once */
        enum storage_err err =
            log_progress_read(progress, core, &reader->session, job->deadline_ms, ret_lost);
        if (*ret_lost || (err == STORAGE_OK && covers(waiting, progress))) {
            return err;
        }
    }
    return settled_await(&reader->settled, core, &reader->session, job, ret_lost);
}

/* ---- looking ---- */

struct wanted_user {
    struct slice site, user;
    entry_event_fn *take;
    void *data;
};

static void take_if_same(void *data, const struct chunk_event *event)
{
    const struct wanted_user *wanted = data;
    if (slice_equal(event->user, wanted->user) && slice_equal(event->site, wanted->site)) {
        wanted->take(wanted->data, event);
    }
}

bool waiting_find(const struct waiting *waiting, struct slice site, struct slice user,
    entry_event_fn *take, bool (*is_enough)(const void *data), void *data)
{
    bool ok = true;
    struct wanted_user wanted = {site, user, take, data};
    for (size_t i = waiting->n; ok && i-- > 0 && !is_enough(data);) {
        struct log_entry *entry = waiting->entries[i];
        if (entry_may_have(entry, site, user)) {
            ok = entry_each_near(entry, user, take_if_same, &wanted);
        }
    }
    return ok;
}
