#include "storage/log/unfolded.h"

#include <stdlib.h>
#include <string.h>

#include "storage/base/clock.h"
#include "storage/base/cond.h"
#include "storage/base/index.h"

void unfolded_init(struct unfolded *u, struct storage_stats *stats)
{
    *u = (struct unfolded){.stats = stats, .limit = UNFOLDED_EVENTS_MAX, .n_logs = 1};
    mutex_init(&u->lock);
    cond_init(&u->put);
}

/* Under the lock: since when the oldest entry of all logs waits, CLOCK_MONOTONIC; 0: none does. */
static int64_t oldest_ms(const struct unfolded *u)
{
    int64_t oldest = INT64_MAX;
    for (unsigned i = 0; i < u->n_logs; i++) {
        const struct unfolded_log *log = &u->logs[i];
        int64_t since_ms = log->n > 0 ? log->entries[log->first]->acknowledged_us / 1000 : oldest;
        oldest = since_ms < oldest ? since_ms : oldest;
    }
    return oldest == INT64_MAX ? 0 : oldest;
}

/* Under the lock: has no fold got on for UNFOLDED_STALL_MS, though something waits? */
static bool folds_stall(const struct unfolded *u)
{
    int64_t before_ms = monotonic_ms() - UNFOLDED_STALL_MS;
    int64_t since_ms = u->moved_ms > before_ms ? 0 : oldest_ms(u);
    return since_ms != 0 && since_ms <= before_ms;
}

/* Under the lock: how many events there is room for. */
static size_t room(const struct unfolded *u)
{
    size_t limit = folds_stall(u) ? UNFOLDED_EVENTS_MAX : atomic_load(&u->limit);
    size_t events = (size_t)atomic_load(&u->stats->log_events);
    size_t bytes = (size_t)atomic_load(&u->stats->log_bytes);
    return events >= limit || bytes >= UNFOLDED_BYTES_MAX ? 0 : limit - events;
}

/* Under the lock: tell the writers that there is room, if one was told that there is none. */
static void unfolded_tell_room(struct unfolded *u)
{
    if (u->was_full && room(u) > 0) {
        u->was_full = false;
        if (u->has_room != NULL) {
            u->has_room(u->has_room_data);
        }
    }
}

/* Under the lock: release the first entry of @log. */
static void unfolded_drop_first(struct unfolded *u, struct unfolded_log *log)
{
    struct log_entry *entry = log->entries[log->first++];
    log->n--;
    atomic_fetch_sub(&u->stats->log_events, (int64_t)entry_events(entry));
    atomic_fetch_sub(&u->stats->log_bytes, (int64_t)entry_bytes(entry));
    entry_release(entry);
}

void unfolded_release(struct unfolded *u)
{
    for (unsigned i = 0; i < u->n_logs; i++) {
        while (u->logs[i].n > 0) {
            unfolded_drop_first(u, &u->logs[i]);
        }
        free(u->logs[i].entries);
    }
    pthread_cond_destroy(&u->put);
    pthread_mutex_destroy(&u->lock);
}

void unfolded_begin(struct unfolded *u, unsigned place, const char *id)
{
    struct unfolded_log *log = &u->logs[place];
    pthread_mutex_lock(&u->lock);
    while (log->n > 0) {
        unfolded_drop_first(u, log);
    }
    memcpy(log->id, id, sizeof(log->id));
    log->last = log->shown = log->kept_behind = 0;
    pthread_cond_broadcast(&u->put);
    unfolded_tell_room(u);
    pthread_mutex_unlock(&u->lock);
}

/* Under the lock: make room for an entry behind the last one.  False: out of memory. */
static bool unfolded_reserve(struct unfolded_log *log)
{
    if (log->first > 0 && log->first + log->n == log->capacity) {
        memmove(log->entries, log->entries + log->first, log->n * sizeof(void *));
        log->first = 0;
    }
    return array_reserve(&log->entries, &log->capacity, log->first + log->n, sizeof(void *));
}

bool unfolded_put(struct unfolded *u, unsigned place, struct log_entry *entry)
{
    struct unfolded_log *log = &u->logs[place];
    pthread_mutex_lock(&u->lock);
    bool ok = unfolded_reserve(log);
    if (ok) {
        log->entries[log->first + log->n++] = entry_reference(entry);
        atomic_fetch_add(&u->stats->log_events, (int64_t)entry_events(entry));
        atomic_fetch_add(&u->stats->log_bytes, (int64_t)entry_bytes(entry));
    }
    log->last = entry->n;
    pthread_cond_broadcast(&u->put);
    void (*arrived)(void *) = u->arrived;
    pthread_mutex_unlock(&u->lock);
    if (arrived != NULL) {
        arrived(u->arrived_data);
    }
    return ok;
}

void unfolded_shows(struct unfolded *u, unsigned place, uint64_t n)
{
    struct unfolded_log *log = &u->logs[place];
    pthread_mutex_lock(&u->lock);
    log->shown = log->shown < n ? n : log->shown;
    u->has_told = true; /* a client that repeats such a request is told */
    pthread_mutex_unlock(&u->lock);
}

void unfolded_hides(struct unfolded *u, unsigned place, uint64_t n)
{
    struct unfolded_log *log = &u->logs[place];
    pthread_mutex_lock(&u->lock);
    log->shown -= log->shown == n;
    pthread_cond_broadcast(&u->put);
    pthread_mutex_unlock(&u->lock);
}

uint64_t unfolded_shown(struct unfolded *u, unsigned place)
{
    const struct unfolded_log *log = &u->logs[place];
    pthread_mutex_lock(&u->lock);
    uint64_t n = log->shown > log->last ? log->shown : log->last;
    pthread_mutex_unlock(&u->lock);
    return n;
}

/* Under the lock: are all entries up to the numbers @shown put in?  Numbers that are hidden by now
 * are not waited for, nor are those of a log that has ended. */
static bool has_put(const struct unfolded *u, const uint64_t shown[LOG_PARTITIONS_MAX])
{
    for (unsigned i = 0; i < u->n_logs; i++) {
        const struct unfolded_log *log = &u->logs[i];
        if (log->last < shown[i] && log->last < log->shown) {
            return false;
        }
    }
    return true;
}

bool unfolded_await_shown(struct unfolded *u, int64_t deadline_us)
{
    uint64_t shown[LOG_PARTITIONS_MAX] = {0};
    pthread_mutex_lock(&u->lock);
    for (unsigned i = 0; i < u->n_logs; i++) {
        shown[i] = u->logs[i].shown;
    }
    bool has = has_put(u, shown);
    while (!has && monotonic_us() < deadline_us) {
        cond_wait_until_us(&u->put, &u->lock, deadline_us);
        has = has_put(u, shown);
    }
    pthread_mutex_unlock(&u->lock);
    return has;
}

void unfolded_keep(struct unfolded *u)
{
    pthread_mutex_lock(&u->lock);
    u->keeps = true;
    u->has_told = false;
    for (unsigned i = 0; i < u->n_logs; i++) {
        u->logs[i].kept_behind = u->logs[i].last;
    }
    pthread_mutex_unlock(&u->lock);
}

bool unfolded_keeps_all(struct unfolded *u)
{
    pthread_mutex_lock(&u->lock);
    bool all = !u->has_told;
    pthread_mutex_unlock(&u->lock);
    return all;
}

bool unfolded_end_keep(struct unfolded *u)
{
    pthread_mutex_lock(&u->lock);
    bool told = u->has_told;
    u->keeps = false;
    if (u->is_kept && u->has_room != NULL) {
        u->has_room(u->has_room_data);
    }
    u->is_kept = false;
    pthread_mutex_unlock(&u->lock);
    return !told;
}

uint64_t unfolded_will_tell(struct unfolded *u, unsigned place, bool can_wait)
{
    const struct unfolded_log *log = &u->logs[place];
    pthread_mutex_lock(&u->lock);
    bool all = !u->keeps || !can_wait;
    uint64_t most = all ? UINT64_MAX : log->kept_behind;
    u->has_told = u->has_told || all;
    u->is_kept = u->is_kept || log->last > most;
    pthread_mutex_unlock(&u->lock);
    return most;
}

size_t unfolded_room(struct unfolded *u, size_t under_way)
{
    pthread_mutex_lock(&u->lock);
    size_t events = room(u);
    u->was_full = u->was_full || events == 0;
    pthread_mutex_unlock(&u->lock);
    return events > under_way ? events - under_way : 0;
}

void unfolded_limit(struct unfolded *u, size_t events)
{
    pthread_mutex_lock(&u->lock);
    atomic_store(&u->limit, events < UNFOLDED_EVENTS_MAX ? events : UNFOLDED_EVENTS_MAX);
    unfolded_tell_room(u);
    pthread_mutex_unlock(&u->lock);
}

void unfolded_moves(struct unfolded *u)
{
    pthread_mutex_lock(&u->lock);
    u->moved_ms = monotonic_ms();
    pthread_mutex_unlock(&u->lock);
}

void unfolded_on_room(struct unfolded *u, void (*has_room)(void *data), void *data)
{
    pthread_mutex_lock(&u->lock);
    u->has_room = has_room;
    u->has_room_data = data;
    pthread_mutex_unlock(&u->lock);
}

uint64_t unfolded_last(struct unfolded *u, unsigned place, char ret_id[LOG_ID_TEXT + 1])
{
    const struct unfolded_log *log = &u->logs[place];
    pthread_mutex_lock(&u->lock);
    memcpy(ret_id, log->id, sizeof(log->id));
    uint64_t last = log->last;
    pthread_mutex_unlock(&u->lock);
    return last;
}

uint64_t unfolded_take(struct unfolded *u, unsigned place, uint64_t after, size_t max_events,
    char ret_id[LOG_ID_TEXT + 1], struct log_entry ***ret, size_t *ret_n)
{
    const struct unfolded_log *log = &u->logs[place];
    size_t events = 0;
    pthread_mutex_lock(&u->lock);
    memcpy(ret_id, log->id, sizeof(log->id));
    size_t end = log->first + log->n;
    size_t i = end;
    while (i > log->first && log->entries[i - 1]->n > after) {
        i--;
    }
    *ret_n = 0;
    *ret = i == end ? NULL : malloc((end - i) * sizeof(void *));
    for (; *ret != NULL && i < end && events < max_events; i++) {
        (*ret)[(*ret_n)++] = entry_reference(log->entries[i]);
        events += entry_events(log->entries[i]);
    }
    uint64_t last = log->last;
    pthread_mutex_unlock(&u->lock);
    return last;
}

void unfolded_done(struct unfolded *u, unsigned place, const char *id, uint64_t n)
{
    struct unfolded_log *log = &u->logs[place];
    pthread_mutex_lock(&u->lock);
    while (log->n > 0 && strcmp(log->id, id) == 0 && log->entries[log->first]->n <= n) {
        unfolded_drop_first(u, log);
    }
    unfolded_tell_room(u);
    pthread_mutex_unlock(&u->lock);
}

int64_t unfolded_age_ms(struct unfolded *u)
{
    pthread_mutex_lock(&u->lock);
    int64_t since_ms = oldest_ms(u);
    pthread_mutex_unlock(&u->lock);
    return since_ms == 0 ? 0 : monotonic_ms() - since_ms;
}

bool unfolded_is_own(struct unfolded *u, const char *id)
{
    bool is_own = false;
    pthread_mutex_lock(&u->lock);
    for (unsigned i = 0; i < u->n_logs; i++) {
        is_own = is_own || strcmp(u->logs[i].id, id) == 0;
    }
    pthread_mutex_unlock(&u->lock);
    return is_own;
}
