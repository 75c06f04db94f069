#include "storage/log/waiting.h"

#include <stdlib.h>
#include <string.h>

#include "storage/log/unfolded.h"

void waiting_release(struct waiting *waiting)
{
    for (size_t i = 0; i < waiting->n; i++) {
        entry_release(waiting->entries[i]);
    }
    free(waiting->entries);
    *waiting = (struct waiting){0};
}

/* Are the entries all that the cursors lack of the log, which is this process's, up to @last?  What
 * is behind was acknowledged later. */
static bool has_all(const struct waiting *waiting, const struct log_standing *log, uint64_t last)
{
    uint64_t next = log->counted + 1;
    last = last < log->head.n ? last : log->head.n;
    for (size_t i = 0; i < waiting->n && next <= last; i++) {
        const struct log_entry *entry = waiting->entries[i];
        if (entry->n == next && strcmp(entry->era, log->head.era) == 0) {
            next++;
        }
    }
    return next > last;
}

/* Is everything counted, but for the entries? */
static bool covers(const struct waiting *waiting, const struct log_progress *progress,
    const char *own_id, uint64_t last)
{
    for (size_t i = 0; i < progress->n; i++) {
        const struct log_standing *log = &progress->logs[i];
        bool is_own = strcmp(log->head.id, own_id) == 0;
        if (log->counted < log->head.n && (!is_own || !has_all(waiting, log, last))) {
            return false;
        }
    }
    return true;
}

enum storage_err waiting_await(
    struct waiting *ret, struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct core *core = reader->core;
    struct log_progress *progress = &reader->settled.progress;
    char id[LOG_ID_TEXT + 1];
    *ret = (struct waiting){0};
    /* Of several servers each can go back alone; and events of a site that is being deleted are not
     * counted. */
    bool looks = !core->is_spread && atomic_load(&core->deletions.n) == 0 &&
                 !settled_is_known(core, &reader->session, job);
    if (!looks) {
        return settled_await(&reader->settled, core, &reader->session, job, ret_lost);
    }
    uint64_t last = unfolded_take(core->unfolded, 0, 0, SIZE_MAX, id, &ret->entries, &ret->n);
    progress->remembers = false; /* the own log has grown: all in one round trip */
    bool all = ret->n > 0 &&
               log_progress_read(progress, core, &reader->session, job->deadline_ms, ret_lost) ==
                   STORAGE_OK &&
               covers(ret, progress, id, last);
    if (all) {
        return STORAGE_OK;
    }
    waiting_release(ret);
    return *ret_lost ? STORAGE_DOWN
                     : settled_await(&reader->settled, core, &reader->session, job, ret_lost);
}

/* ---- looking ---- */

/* False: out of memory. */
static bool find_in(
    struct slice chunks, struct slice site, struct slice user, waiting_event_fn *take, void *data)
{
    struct chunk_reader reader;
    chunk_reader_init(&reader, chunks);
    while (chunk_next(&reader)) {
        while (chunk_next_event(&reader)) {
            const struct chunk_event *event = &reader.event;
            if (slice_equal(event->user, user) && slice_equal(event->site, site)) {
                take(data, event);
            }
        }
    }
    bool ok = !reader.failed; /* the bytes are our own */
    chunk_reader_release(&reader);
    return ok;
}

bool waiting_find(const struct waiting *waiting, struct slice site, struct slice user,
    waiting_event_fn *take, void *data)
{
    bool ok = true;
    for (size_t i = 0; ok && i < waiting->n; i++) {
        struct slice chunks;
        for (size_t k = 0; ok && entry_chunks(waiting->entries[i], k, &chunks); k++) {
            /* most entries have no such user: that is seen without reading their events */
            if (chunks.n > 0 && memmem(chunks.p, chunks.n, user.p, user.n) != NULL) {
                ok = find_in(chunks, site, user, take, data);
            }
        }
    }
    return ok;
}
