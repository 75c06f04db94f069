#include "storage/core/deletions.h"

#include <string.h>

#include "storage/base/cond.h"
#include "storage/redis/resp.h"
#include "storage/schema/deletion_record.h"
#include "storage/schema/key.h"

void deletions_init(struct deletions *deletions)
{
    mutex_init(&deletions->lock);
}

void deletions_release(struct deletions *deletions)
{
    pthread_mutex_destroy(&deletions->lock);
}

void deletions_learn_over(struct deletions *deletions, int64_t over_ms)
{
    int64_t known_ms = atomic_load(&deletions->over_ms);
    while (known_ms < over_ms &&
           !atomic_compare_exchange_weak(&deletions->over_ms, &known_ms, over_ms)) {
    }
}

void deletions_ask_over(struct buffer *out, const char *tag)
{
    key_command(out, "HGET", tag, "pass", 1);
    resp_text(out, "over");
}

int64_t deletions_arrival_ms(const struct deletions *deletions, int64_t redis_ms)
{
    int64_t over_ms = atomic_load(&deletions->over_ms);
    return redis_ms < over_ms ? over_ms : redis_ms;
}

void deletions_learn(struct deletions *deletions, const struct reply *reply, int64_t redis_ms)
{
    size_t n = 0;
    int64_t last_ms = 0;
    if (reply->type != REPLY_ARRAY) {
        return;
    }
    pthread_mutex_lock(&deletions->lock);
    for (size_t i = 0; i + 1 < reply->n && n < DELETIONS_MAX; i += 2) {
        struct deletion_target target;
        struct deletion_record record;
        if (!deletion_field_parse(reply->items[i].text, &target) ||
            !deletion_record_parse(reply->items[i + 1].text, &record)) {
            continue;
        }
        last_ms = record.until_ms > last_ms ? record.until_ms : last_ms;
        if (deletion_is_over(&record, redis_ms)) {
            deletions_learn_over(deletions, record.until_ms);
        }
        if (target.page.n == 0) {
            struct deleting_site *site = &deletions->sites[n++];
            *site = (struct deleting_site){.n = target.site.n, .until_ms = record.until_ms};
            memcpy(site->name, target.site.p, target.site.n);
        }
    }
    if (last_ms < deletions->last_ms) { /* that deletion has left the list, so it is over */
        deletions_learn_over(deletions, deletions->last_ms);
    }
    deletions->last_ms = last_ms;
    atomic_store(&deletions->n, n);
    pthread_mutex_unlock(&deletions->lock);
}

bool deletions_look_due(struct deletions *deletions, int64_t now_ms)
{
    int64_t looked_ms = atomic_load(&deletions->looked_ms);
    return now_ms - looked_ms >= DELETIONS_LOOK_MS &&
           atomic_compare_exchange_strong(&deletions->looked_ms, &looked_ms, now_ms);
}

/* Is @site being deleted for what comes at @redis_ms?  With the lock held. */
static bool deletions_has(const struct deletions *deletions, struct slice site, int64_t redis_ms)
{
    int64_t arrival_ms = deletions_arrival_ms(deletions, redis_ms);
    size_t n = atomic_load(&deletions->n);
    for (size_t i = 0; i < n; i++) {
        const struct deleting_site *is = &deletions->sites[i];
        if (slice_equal((struct slice){is->name, is->n}, site)) {
            return is->until_ms == 0 || arrival_ms < is->until_ms;
        }
    }
    return false;
}

bool deletions_refuse_site(struct deletions *deletions, struct slice site, int64_t redis_ms)
{
    const struct event event = {.site = site};
    return deletions_refuse(deletions, &event, 1, redis_ms);
}

bool deletions_refuse(
    struct deletions *deletions, const struct event *events, size_t n, int64_t redis_ms)
{
    bool refuse = false;
    if (atomic_load(&deletions->n) == 0) {
        return false;
    }
    pthread_mutex_lock(&deletions->lock);
    for (size_t i = 0; i < n && !refuse; i++) {
        refuse = deletions_has(deletions, events[i].site, redis_ms);
    }
    pthread_mutex_unlock(&deletions->lock);
    return refuse;
}
