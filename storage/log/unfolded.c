#include "storage/log/unfolded.h"

#include <stdlib.h>
#include <string.h>

#include "storage/base/clock.h"
#include "storage/base/cond.h"
#include "storage/base/index.h"

void unfolded_init(struct unfolded *u, struct storage_stats *stats)
{
    *u = (struct unfolded){.stats = stats, .limit = UNFOLDED_EVENTS_MAX};
    mutex_init(&u->lock);
}

/* Under the lock: the figures of /metrics. */
static void unfolded_show(struct unfolded *u)
{
    atomic_store(&u->stats->log_events, (int64_t)u->n_events);
    atomic_store(&u->stats->log_bytes, (int64_t)u->n_bytes);
}

/* Under the lock. */
static size_t room(const struct unfolded *u)
{
    int64_t since_ms = u->moved_ms > u->oldest_ms ? u->moved_ms : u->oldest_ms;
    bool stalls = u->n > 0 && monotonic_ms() - since_ms >= UNFOLDED_STALL_MS;
    size_t limit = stalls ? UNFOLDED_EVENTS_MAX : atomic_load(&u->limit);
    return u->n_events >= limit || u->n_bytes >= UNFOLDED_BYTES_MAX ? 0 : limit - u->n_events;
}

/* Under the lock: tell that there is room, if anybody waits for that. */
static void unfolded_tell_room(struct unfolded *u)
{
    if (u->was_full && room(u) > 0) {
        u->was_full = false;
        if (u->has_room != NULL) {
            u->has_room(u->has_room_data);
        }
    }
}

/* Under the lock: let go of the first entry. */
static void unfolded_drop_first(struct unfolded *u)
{
    struct log_entry *entry = u->entries[u->first++];
    u->n--;
    u->n_events -= entry_events(entry);
    u->n_bytes -= entry_bytes(entry);
    u->oldest_ms = u->n == 0 ? 0 : u->entries[u->first]->answered_ms;
    entry_release(entry);
}

void unfolded_release(struct unfolded *u)
{
    while (u->n > 0) {
        unfolded_drop_first(u);
    }
    free(u->entries);
    pthread_mutex_destroy(&u->lock);
}

void unfolded_begin(struct unfolded *u, const char *id)
{
    pthread_mutex_lock(&u->lock);
    while (u->n > 0) {
        unfolded_drop_first(u);
    }
    memcpy(u->id, id, sizeof(u->id));
    u->last = 0;
    unfolded_show(u);
    unfolded_tell_room(u);
    pthread_mutex_unlock(&u->lock);
}

/* Under the lock: room for one more behind the last one. */
static bool unfolded_reserve(struct unfolded *u)
{
    if (u->first > 0 && u->first + u->n == u->capacity) {
        memmove(u->entries, u->entries + u->first, u->n * sizeof(void *));
        u->first = 0;
    }
    return array_reserve(&u->entries, &u->capacity, u->first + u->n, sizeof(void *));
}

bool unfolded_put(struct unfolded *u, struct log_entry *entry)
{
    pthread_mutex_lock(&u->lock);
    bool ok = unfolded_reserve(u);
    if (ok) {
        u->oldest_ms = u->n == 0 ? entry->answered_ms : u->oldest_ms;
        u->entries[u->first + u->n++] = entry_reference(entry);
        u->n_events += entry_events(entry);
        u->n_bytes += entry_bytes(entry);
    }
    u->last = entry->n;
    unfolded_show(u);
    void (*arrived)(void *) = u->arrived;
    pthread_mutex_unlock(&u->lock);
    if (arrived != NULL) {
        arrived(u->arrived_data);
    }
    return ok;
}

size_t unfolded_room(struct unfolded *u)
{
    pthread_mutex_lock(&u->lock);
    size_t events = room(u);
    u->was_full = u->was_full || events == 0;
    pthread_mutex_unlock(&u->lock);
    return events;
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

uint64_t unfolded_take(struct unfolded *u, uint64_t after, size_t max_events,
    char ret_id[LOG_ID_TEXT + 1], struct log_entry ***ret, size_t *ret_n)
{
    size_t events = 0;
    *ret_n = 0;
    pthread_mutex_lock(&u->lock);
    memcpy(ret_id, u->id, sizeof(u->id));
    *ret = u->n == 0 ? NULL : malloc(u->n * sizeof(void *));
    for (size_t i = 0; *ret != NULL && i < u->n && events < max_events; i++) {
        struct log_entry *entry = u->entries[u->first + i];
        if (entry->n > after) {
            (*ret)[(*ret_n)++] = entry_reference(entry);
            events += entry_events(entry);
        }
    }
    uint64_t last = u->last;
    pthread_mutex_unlock(&u->lock);
    return last;
}

void unfolded_done(struct unfolded *u, const char *id, uint64_t n)
{
    pthread_mutex_lock(&u->lock);
    while (u->n > 0 && strcmp(u->id, id) == 0 && u->entries[u->first]->n <= n) {
        unfolded_drop_first(u);
    }
    unfolded_show(u);
    unfolded_tell_room(u);
    pthread_mutex_unlock(&u->lock);
}

int64_t unfolded_age_ms(struct unfolded *u)
{
    pthread_mutex_lock(&u->lock);
    int64_t age_ms = u->n == 0 ? 0 : monotonic_ms() - u->oldest_ms;
    pthread_mutex_unlock(&u->lock);
    return age_ms;
}
