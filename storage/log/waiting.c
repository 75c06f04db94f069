#include "storage/log/waiting.h"

#include <stdlib.h>
#include <string.h>

#include "storage/base/clock.h"
#include "storage/log/unfolded.h"
#include "storage/schema/partition.h"

#define YOUNG_MS 2000 /* a site's deletion takes longer: AHEAD_MS of deletion/work.c */

void waiting_release(struct waiting *waiting)
{
    for (size_t i = 0; i < waiting->n; i++) {
        entry_release(waiting->entries[i]);
    }
    free(waiting->entries);
    *waiting = (struct waiting){0};
}

/* Has the first one waited for so long that another process may have counted it, and deleted it
 * with its site? */
static bool is_old(const struct waiting *waiting)
{
    return waiting->n > 0 &&
           monotonic_us() - waiting->entries[0]->acknowledged_us >= INT64_C(1000) * YOUNG_MS;
}

void waiting_take(struct waiting *ret, struct core *core)
{
    *ret = (struct waiting){0};
    if (core->is_spread || atomic_load(&core->deletions.n) > 0) {
        return;
    }
    (void)unfolded_take(core->unfolded, 0, 0, SIZE_MAX, ret->id, &ret->entries, &ret->n);
    ret->last = unfolded_shown(core->unfolded, 0);
    if (is_old(ret)) {
        waiting_release(ret);
    }
}

/* Are the entries all that the cursors lack of the log, which is this process's?  What is behind
 * the last one was acknowledged later, by anybody. */
static bool has_all(const struct waiting *waiting, const struct log_standing *log)
{
    uint64_t next = log->counted + 1;
    uint64_t last = waiting->last < log->head.n ? waiting->last : log->head.n;
    for (size_t i = 0; i < waiting->n && next <= last; i++) {
        const struct log_entry *entry = waiting->entries[i];
        if (entry->n == next && strcmp(entry->era, log->head.era) == 0) {
            next++;
        }
    }
    return next > last;
}

/* Is everything counted, but for the entries? */
static bool covers(const struct waiting *waiting, const struct log_progress *progress)
{
    for (size_t i = 0; i < progress->n; i++) {
        const struct log_standing *log = &progress->logs[i];
        bool is_own = strcmp(log->head.id, waiting->id) == 0;
        if (log->counted < log->head.n && (!is_own || !has_all(waiting, log))) {
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
        progress->remembers = false; /* the own log has grown: all in one round trip */
        enum storage_err err =
            log_progress_read(progress, core, &reader->session, job->deadline_ms, ret_lost);
        if (*ret_lost || (err == STORAGE_OK && covers(waiting, progress))) {
            return err;
        }
    }
    return settled_await(&reader->settled, core, &reader->session, job, ret_lost);
}

/* ---- looking ---- */

#define FILTERED_EVENTS 128 /* with more the filter of an entry lets most users pass */

/* Read the events of an entry.  False: out of memory. */
static bool each_event(const struct log_entry *entry, waiting_event_fn *take, void *data)
{
    bool ok = true;
    struct slice chunks;
    for (size_t k = 0; ok && entry_chunks(entry, k, &chunks); k++) {
        struct chunk_reader reader;
        chunk_reader_init(&reader, chunks);
        while (chunk_next(&reader)) {
            while (chunk_next_event(&reader)) {
                take(data, &reader.event);
            }
        }
        ok = !reader.failed; /* the bytes are our own */
        chunk_reader_release(&reader);
    }
    return ok;
}

/* A user is two bits. */
static void users_bits(struct slice site, struct slice user, unsigned ret[2])
{
    uint64_t hash = page_hash(site, user);
    ret[0] = (unsigned)(hash % (ENTRY_USERS * 64));
    ret[1] = (unsigned)((hash >> 32) % (ENTRY_USERS * 64));
}

static void add_user(void *data, const struct chunk_event *event)
{
    struct log_entry *entry = data;
    unsigned bits[2];
    users_bits(event->site, event->user, bits);
    for (size_t i = 0; event->user.n > 0 && i < 2; i++) {
        atomic_fetch_or(&entry->users[bits[i] / 64], UINT64_C(1) << (bits[i] & 63));
    }
}

/* May the user be among those of the entry?  Several readers may make the filter at a time: they
 * make the same. */
static bool may_have(struct log_entry *entry, const unsigned bits[2])
{
    if (!atomic_load(&entry->has_users)) {
        if (entry_events(entry) > FILTERED_EVENTS || !each_event(entry, add_user, entry)) {
            return true;
        }
        atomic_store(&entry->has_users, true);
    }
    return (atomic_load(&entry->users[bits[0] / 64]) >> (bits[0] & 63) & 1) != 0 &&
           (atomic_load(&entry->users[bits[1] / 64]) >> (bits[1] & 63) & 1) != 0;
}

/* Do the bytes of the user stand in the entry? */
static bool has_text(const struct log_entry *entry, struct slice user)
{
    bool found = false;
    struct slice chunks;
    for (size_t k = 0; !found && entry_chunks(entry, k, &chunks); k++) {
        found = chunks.n > 0 && memmem(chunks.p, chunks.n, user.p, user.n) != NULL;
    }
    return found;
}

struct wanted_user {
    struct slice site, user;
    waiting_event_fn *take;
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
    waiting_event_fn *take, void *data)
{
    bool ok = true;
    struct wanted_user wanted = {site, user, take, data};
    unsigned bits[2];
    users_bits(site, user, bits);
    for (size_t i = 0; ok && i < waiting->n; i++) {
        struct log_entry *entry = waiting->entries[i];
        if (may_have(entry, bits) && has_text(entry, user)) {
            ok = each_event(entry, take_if_same, &wanted);
        }
    }
    return ok;
}
