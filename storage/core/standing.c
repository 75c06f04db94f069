#include "storage/core/standing.h"

#include <stddef.h>

void standing_init(struct standing *standing, bool needs_acks)
{
    atomic_store(&standing->since_ms, INT64_MAX);
    atomic_store(&standing->until_ms, INT64_MIN);
    atomic_store(&standing->acked_ms, INT64_MIN);
    atomic_store(&standing->wanted_ms, INT64_MIN);
    standing->needs_acks = needs_acks;
    standing->on_want = NULL;
}

/* `since_ms` is written before the other members of a connection, and read after them.  So if an
 * old `since_ms` is read, the other members are of that connection, too, or of an older one. */
void standing_begin(struct standing *standing, int64_t now_ms)
{
    atomic_store(&standing->since_ms, now_ms);
}

void standing_answered(struct standing *standing, int64_t sent_ms)
{
    atomic_store(&standing->until_ms, sent_ms);
}

void standing_acked(struct standing *standing, int64_t sent_ms)
{
    atomic_store(&standing->acked_ms, sent_ms);
}

void standing_end(struct standing *standing)
{
    atomic_store(&standing->since_ms, INT64_MAX);
}

/* The instant up to which the connection proves that nothing was lost. */
static int64_t proved_ms(struct standing *standing)
{
    int64_t until_ms = atomic_load(&standing->until_ms);
    int64_t acked_ms = standing->needs_acks ? atomic_load(&standing->acked_ms) : until_ms;
    return acked_ms < until_ms ? acked_ms : until_ms;
}

int64_t standing_wanted_ms(struct standing *standing)
{
    int64_t wanted_ms = atomic_load(&standing->wanted_ms);
    return wanted_ms > proved_ms(standing) ? wanted_ms : INT64_MIN;
}

void standing_want(struct standing *standing, int64_t at_ms)
{
    int64_t wanted_ms = atomic_load(&standing->wanted_ms);
    while (wanted_ms < at_ms &&
           !atomic_compare_exchange_weak(&standing->wanted_ms, &wanted_ms, at_ms)) {
    }
    if (standing->on_want != NULL) {
        standing->on_want(standing->on_want_data);
    }
}

bool standing_held(struct standing *standing, int64_t from_ms, int64_t to_ms)
{
    int64_t until_ms = proved_ms(standing);
    return atomic_load(&standing->since_ms) < from_ms && until_ms >= to_ms;
}

bool standing_awaits(struct standing *standing, int64_t from_ms, int64_t to_ms)
{
    int64_t since_ms = atomic_load(&standing->since_ms);
    bool is_later = since_ms != INT64_MAX && since_ms >= from_ms;
    return !is_later && !standing_held(standing, from_ms, to_ms);
}
