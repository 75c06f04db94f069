#include "service/redis/redis_news.h"

#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "storage/base/clock.h"
#include "storage/job/error.h"

#define REASON_MS        60000
#define CLOCKS_DIFFER_MS 5000

/* Attempts to connect follow each other closely, so the same reason is told once a minute.  Only
 * the writer's thread calls this. */
static bool is_news(struct redis_news *news, const char *reason)
{
    int64_t now_ms = monotonic_ms();
    if (strcmp(news->last_reason, reason) == 0 && now_ms - news->last_reason_ms < REASON_MS) {
        return false;
    }
    (void)snprintf(news->last_reason, sizeof(news->last_reason), "%s", reason);
    news->last_reason_ms = now_ms;
    return true;
}

void redis_news_storage(void *data, enum storage_notice what, const char *detail)
{
    struct redis_news *news = data;
    switch (what) {
    case STORAGE_CONNECTED:
        news->last_reason[0] = '\0';
        log_info(news->logger, "connected to Redis", log_text("redis", "ready"));
        atomic_store(&news->connected, true);
        atomic_store(&news->clock_news, true);
        (void)eventfd_write(news->fd, 1);
        break;
    case STORAGE_DISCONNECTED:
        log_warn(news->logger, "lost the connection to Redis", log_text("redis", "lost"));
        break;
    case STORAGE_CONNECT_FAILED:
        if (monotonic_ms() < news->starting_until_ms) {
            log_debug(news->logger, "Redis is starting", log_text("reason", detail));
        } else if (is_news(news, detail)) {
            log_warn(news->logger, "cannot use Redis", log_text("reason", detail));
        }
        break;
    case STORAGE_SETTINGS_DIFFER:
        if (is_news(news, detail)) {
            log_error(news->logger, "this Redis or its data is not for this process; not serving",
                log_text("reason", detail));
        }
        atomic_store(&news->unfit, true);
        (void)eventfd_write(news->fd, 1);
        break;
    case STORAGE_REFUSING:
        log_warn(news->logger, "Redis refuses a write", log_text("reason", detail));
        break;
    case STORAGE_ROLLUP_FAILED:
        log_warn(news->logger, "a rollup step failed", log_text("reason", detail));
        break;
    case STORAGE_CLOCK:
        atomic_store(&news->clock_news, true);
        (void)eventfd_write(news->fd, 1);
        break;
    case STORAGE_LEADING:
        log_info(news->logger, "leading the rollups", log_bool("leader", true));
        break;
    case STORAGE_LEADER_LOST:
        log_info(news->logger, "not leading the rollups any more", log_text("reason", detail));
        break;
    case STORAGE_LOG_BROKEN:
        log_warn(news->logger, "a log has an entry that cannot be read: it is not counted further",
            log_text("log", detail));
        break;
    case STORAGE_DELETION_LOST:
        log_warn(news->logger,
            "a server has gone back: a partition knew of a deletion that nobody else knows of; "
            "events count there again",
            log_text("site", detail));
        break;
    case STORAGE_SEEN_FAILED:
        log_warn(
            news->logger, "a log of who saw what could not be folded", log_text("reason", detail));
        break;
    case STORAGE_SETTINGS_CHANGED:
        log_info(news->logger, "the settings of the data changed", log_text("settings", detail));
        break;
    case STORAGE_DEGRADED:
        log_warn(news->logger, "some partitions' servers are away: going on without them",
            log_text("reason", detail));
        break;
    case STORAGE_FEW_REPLICAS:
        log_warn(news->logger,
            "replicas are away: events that need them are refused until they are back",
            log_text("reason", detail));
        break;
    case STORAGE_MAY_FORGET:
        log_warn(news->logger, "Redis may lose what was acknowledged", log_text("reason", detail));
        break;
    }
}

void redis_news_child(struct redis_news *news, const struct redis_child_report *report)
{
    if (report->outcome != REDIS_CHILD_NOTHING) {
        storage_err_note_disk(report->disk_full); /* answers say why, too */
    }
    switch (report->outcome) {
    case REDIS_CHILD_NOTHING:
        break;
    case REDIS_CHILD_STARTED:
        if (report->orphan != 0) {
            log_warn(news->logger, "ended a redis-server that an earlier tallyd left behind",
                log_int("pid", report->orphan), log_bool("killed", report->orphan_forced));
        }
        log_info(news->logger, "started redis-server", log_int("pid", report->pid));
        break;
    case REDIS_CHILD_EXITED:
        log_error(news->logger, "redis-server ended", log_int("pid", report->pid),
            log_text("how", report->text), log_bool("disk_full", report->disk_full),
            log_int("restart_in_ms", report->retry_in_ms));
        break;
    case REDIS_CHILD_FAILED:
        log_error(news->logger, "redis-server could not be started",
            log_text("reason", report->text), log_bool("disk_full", report->disk_full),
            log_int("retry_in_ms", report->retry_in_ms));
        break;
    }
}

/* Times of arrival, windows and expiries are of Redis's clock.  People who look at this machine's
 * clock should know when the two differ. */
void redis_news_clocks(struct redis_news *news, int64_t redis_ms, int64_t here_ms)
{
    int64_t ahead_ms = redis_ms - here_ms;
    int64_t change_ms = ahead_ms - news->clock_ahead_ms;
    if (redis_ms == 0 || (change_ms < CLOCKS_DIFFER_MS && change_ms > -CLOCKS_DIFFER_MS)) {
        return;
    }
    if (ahead_ms < CLOCKS_DIFFER_MS && ahead_ms > -CLOCKS_DIFFER_MS) {
        log_info(news->logger, "Redis's clock and this machine's agree again",
            log_int("redis_ahead_s", ahead_ms / 1000));
        ahead_ms = 0;
    } else {
        log_warn(news->logger, "Redis's clock differs from this machine's; Redis's is trusted",
            log_int("redis_ahead_s", ahead_ms / 1000));
    }
    news->clock_ahead_ms = ahead_ms;
}
