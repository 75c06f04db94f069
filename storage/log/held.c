/* held.c - the entries that an appender holds: which are safe, and how many there may be. */
#include "storage/log/append.h"

#include <string.h>

#include "storage/base/clock.h"

/* The writers of a process hold at most so many bytes, and some more where entries are held for a
 * failover (core->hold_ms). */
#define HELD_BYTES_MAX (2 * UNFOLDED_BYTES_MAX)
#define FAILOVER_BYTES (3 * UNFOLDED_BYTES_MAX)

void held_append(struct appender *a, struct log_entry *entry)
{
    entry->next = NULL;
    a->open = a->open == NULL ? entry : a->open;
    a->unacknowledged = a->unacknowledged == NULL ? entry : a->unacknowledged;
    a->unsafe = a->unsafe == NULL ? entry : a->unsafe;
    if (a->last == NULL) {
        a->first = entry;
    } else {
        a->last->next = entry;
    }
    a->last = entry;
    atomic_fetch_add(&a->core->held_bytes, entry_bytes(entry));
}

void held_forget(struct appender *a, const struct log_entry *entry)
{
    atomic_fetch_sub(&a->core->held_bytes, entry_bytes(entry));
}

bool appender_has_room(const struct appender *a)
{
    size_t n = 0;
    for (const struct log_entry *e = append_under_way(a); e != NULL && n < UNDER_WAY_MAX;
         e = e->next) {
        n++;
    }
    return a->id[0] != '\0' && !a->is_gone && n < UNDER_WAY_MAX &&
           atomic_load(&a->core->held_bytes) <
               HELD_BYTES_MAX + (a->core->hold_ms > 0 ? FAILOVER_BYTES : 0);
}

bool appender_add(struct appender *a, struct storage_job *jobs, int64_t arrival_ms)
{
    struct log_entry *entry = entry_new(jobs, arrival_ms, &a->scratch);
    if (entry == NULL) {
        return false;
    }
    memcpy(entry->id, a->id, sizeof(entry->id));
    entry->n = a->next_n++;
    entry->begun_ms = monotonic_ms();
    held_append(a, entry);
    return true;
}

/* Do the connection's answers prove that Redis still had the entry @for_ms after it was answered?
 */
static bool is_proved(struct appender *a, const struct log_entry *entry, int64_t for_ms)
{
    return entry->state == ENTRY_ANSWERED &&
           (for_ms == 0 ||
               entry->answered_ms + for_ms <= atomic_load(&append_standing(a)->until_ms));
}

void held_show(const struct appender *a)
{
    const struct log_entry *e = a->unsafe;
    while (e != NULL && e->acknowledged_us == 0) {
        e = e->next;
    }
    atomic_store(&a->core->unsafe_since_us[a->place], e == NULL ? 0 : e->acknowledged_us);
}

/* Note how far entries are safe from a crash of Redis. */
static void note_safe(struct appender *a)
{
    const struct log_entry *before = a->unsafe;
    while (a->unsafe != NULL && is_proved(a, a->unsafe, atomic_load(&a->core->go_back_ms))) {
        a->unsafe = a->unsafe->next;
    }
    if (a->unsafe != before) {
        held_show(a);
    }
}

void appender_let_go(struct appender *a)
{
    note_safe(a);
    while (a->first != NULL && a->first != a->unacknowledged && a->first != a->unsafe &&
           is_proved(a, a->first, a->core->hold_ms)) {
        struct log_entry *entry = a->first;
        a->first = entry->next;
        a->last = a->first == NULL ? NULL : a->last;
        held_forget(a, entry);
        entry_release(entry);
    }
}
