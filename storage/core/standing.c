#include "storage/core/standing.h"

void standing_init(struct standing *standing)
{
    atomic_store(&standing->since_ms, INT64_MAX);
    atomic_store(&standing->until_ms, INT64_MIN);
    atomic_store(&standing->wanted_ms, INT64_MIN);
}

/* `since` is written before any `until` of the connection, and read behind it: so where an old
 * `since` is read, `until` is of that connection, or older. */
void standing_begin(struct standing *standing, int64_t now_ms)
{
    atomic_store(&standing->since_ms, now_ms);
}

void standing_answered(struct standing *standing, int64_t sent_ms)
{
    atomic_store(&standing->until_ms, sent_ms);
}

void standing_end(struct standing *standing)
{
    atomic_store(&standing->since_ms, INT64_MAX);
}

void standing_want(struct standing *standing, int64_t at_ms)
{
    int64_t wanted_ms = atomic_load(&standing->wanted_ms);
    while (wanted_ms < at_ms &&
           !atomic_compare_exchange_weak(&standing->wanted_ms, &wanted_ms, at_ms)) {
    }
}

bool standing_held(struct standing *standing, int64_t from_ms, int64_t to_ms)
{
    int64_t until_ms = atomic_load(&standing->until_ms);
    int64_t since_ms = atomic_load(&standing->since_ms);
    return since_ms < from_ms && until_ms >= to_ms;
}

bool standing_awaits(struct standing *standing, int64_t from_ms, int64_t to_ms)
{
    int64_t since_ms = atomic_load(&standing->since_ms);
    bool is_later = since_ms != INT64_MAX && since_ms >= from_ms;
    return !is_later && !standing_held(standing, from_ms, to_ms);
}
