/* redis_news.h - what happens to Redis, told to the log, and to the main thread where it matters.
 *
 * Layer: service.  Storage tells of its connection and of the rollups (storage.h), the embedded
 * Redis of its process (redis_child.h); here that becomes lines of the log, and three flags that
 * the main thread looks at when `fd` is readable.
 *
 * Ownership: the struct is the caller's, who closes fd; the logger outlives it.  Thread safety:
 * redis_news_storage() from storage's threads, the rest from the main thread.
 */
#ifndef SERVICE_REDIS_REDIS_NEWS_H
#define SERVICE_REDIS_REDIS_NEWS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "service/log/log.h"
#include "service/redis/redis_child.h"
#include "storage/storage.h"

struct redis_news {
    struct logger *logger;
    int fd;                    /* eventfd: look at the flags */
    int64_t starting_until_ms; /* until then nobody wonders that Redis does not answer yet */
    _Atomic bool connected;    /* was, once */
    _Atomic bool unfit;        /* Redis, or the data in it, is not for us */
    _Atomic bool clock_news;   /* look at the clocks; who does takes it back */

    /* Private. */
    char last_reason[400]; /* the writer's thread only */
    int64_t last_reason_ms;
    int64_t clock_ahead_ms; /* Redis's clock minus this machine's, as last told */
};

/* storage_config.notice; @news is the struct. */
void redis_news_storage(void *news, enum storage_notice what, const char *detail);

void redis_news_child(struct redis_news *news, const struct redis_child_report *report);

/* Tell if Redis's clock differs from this machine's by much, once it does and once it does not any
 * more.  @redis_ms is 0 as long as Redis's is not known; both UTC. */
void redis_news_clocks(struct redis_news *news, int64_t redis_ms, int64_t here_ms);

#endif
