/* redis_news.h - tell operators what happens to Redis, and tell the main thread when it must act.
 *
 * Layer: service.  Storage reports about its connection and about rollups (storage.h).  The
 * embedded Redis reports about its process (redis_child.h).  These functions turn reports into
 * log records, and into three flags.  The main thread looks at the flags when `fd` is readable.
 *
 * Storage tries again what has failed, and fails again for the same reason.  Such a reason is told
 * once a minute while it holds, and anew after Redis was well in between.
 *
 * Ownership: the struct is the caller's, and so is `fd`.  The logger outlives the struct.
 * Thread safety: redis_news_storage() may be called from any thread, the others from the main one.
 */
#ifndef SERVICE_REDIS_REDIS_NEWS_H
#define SERVICE_REDIS_REDIS_NEWS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "service/log/log.h"
#include "service/redis/redis_child.h"
#include "storage/job/config.h"

#define REDIS_NEWS_SERVER 512 /* bytes of an address, which is cut to fit */
#define REDIS_NEWS_TOLD   4   /* reasons that are remembered; of more, some are told more often */

struct redis_news {
    struct logger *logger;
    int fd;                         /* an eventfd; when it is readable, look at the flags */
    char server[REDIS_NEWS_SERVER]; /* the name of the Redis, for operators, without passwords */
    int64_t starting_until_ms; /* CLOCK_MONOTONIC; before, an unreachable Redis is no warning */
    _Atomic bool connected;    /* storage has been connected, at least once */
    _Atomic bool unfit;        /* Redis, or the data in it, is not for this process */
    _Atomic bool clock_news;   /* the main thread should compare the clocks, and clear this */

    /* Private. */
    pthread_mutex_t lock; /* guards `told` */
    struct {
        uint64_t hash; /* hash of a notice and its reason */
        int64_t at_ms; /* when it was told, CLOCK_MONOTONIC; 0: nothing was */
    } told[REDIS_NEWS_TOLD];
    int64_t clock_ahead_ms; /* Redis's clock minus this machine's, as last told */
};

/* Make a zeroed struct ready; the caller then sets `logger`, `fd` and `server`. */
void redis_news_init(struct redis_news *news);

/* For storage_config.notice; @news is a struct redis_news. */
void redis_news_storage(void *news, enum storage_notice what, const char *detail);

/* Log what happened to the embedded Redis, and have answers say whether its disk is full. */
void redis_news_child(struct redis_news *news, const struct redis_child_report *report);

/* Log when Redis's clock begins to differ much from this machine's, and when both agree again. Both
 * times are UTC; @redis_ms is 0 as long as Redis's clock is not known. */
void redis_news_clocks(struct redis_news *news, int64_t redis_ms, int64_t here_ms);

#endif
