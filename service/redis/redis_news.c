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

/* The record that tells of a notice.  A field without a value has the notice's detail.  A notice
 * without a message is not told. */
static const struct {
    enum log_level level;
    const char *message;
    struct log_field field;
} records[STORAGE_NOTICES] = {
    [STORAGE_CONNECTED] = {LOG_LEVEL_INFO, "connected to Redis",
        {.key = "redis", .value.text = {"ready", 5}}},
    [STORAGE_DISCONNECTED] = {LOG_LEVEL_WARN, "lost the connection to Redis",
        {.key = "redis", .value.text = {"lost", 4}}},
    [STORAGE_CONNECT_FAILED] = {LOG_LEVEL_WARN, "cannot use Redis", {.key = "reason"}},
    [STORAGE_SETTINGS_DIFFER] = {LOG_LEVEL_ERROR,
        "this Redis or its data is not for this process; not serving", {.key = "reason"}},
    [STORAGE_REFUSING] = {LOG_LEVEL_WARN, "Redis refuses a write", {.key = "reason"}},
    [STORAGE_ROLLUP_FAILED] = {LOG_LEVEL_WARN, "a rollup step failed", {.key = "reason"}},
    [STORAGE_SEEN_FAILED] = {LOG_LEVEL_WARN, "a log of who saw what could not be folded",
        {.key = "reason"}},
    [STORAGE_LOG_BROKEN] = {LOG_LEVEL_WARN,
        "a log has an entry that cannot be read: it is not counted further", {.key = "log"}},
    [STORAGE_DELETION_LOST] = {LOG_LEVEL_WARN,
        "a server has gone back: a partition knew of a deletion that nobody else knows of; "
        "events count there again",
        {.key = "site"}},
    [STORAGE_CLOCK] = {LOG_LEVEL_DEBUG, NULL, {.key = NULL}},
    [STORAGE_LEADING] = {LOG_LEVEL_INFO, "leading the rollups",
        {.key = "leader", .type = LOG_BOOL, .value.b = true}},
    [STORAGE_LEADER_LOST] = {LOG_LEVEL_INFO, "not leading the rollups any more", {.key = "reason"}},
    [STORAGE_LOCKS_AWAY] = {LOG_LEVEL_WARN,
        "too few servers of --lock-redis answer: this process cannot lead the rollups",
        {.key = "reason"}},
    [STORAGE_LOCKS_BACK] = {LOG_LEVEL_INFO, "enough servers of --lock-redis answer again",
        {.key = "still_away"}},
    [STORAGE_SETTINGS_CHANGED] = {LOG_LEVEL_INFO, "the settings of the data changed",
        {.key = "settings"}},
    [STORAGE_DEGRADED] = {LOG_LEVEL_WARN,
        "some partitions' servers are away: going on without them", {.key = "reason"}},
    [STORAGE_FEW_REPLICAS] = {LOG_LEVEL_WARN,
        "replicas are away: events that need them are refused until they are back",
        {.key = "reason"}},
    [STORAGE_MAY_FORGET] = {LOG_LEVEL_WARN, "Redis may lose what was acknowledged",
        {.key = "reason"}},
};

static void tell(struct redis_news *news, enum storage_notice what, const char *detail)
{
    struct log_field field = records[what].field;
    if (field.type == LOG_TEXT && field.value.text.p == NULL) {
        field = log_text(field.key, detail);
    }
    if (records[what].message != NULL) {
        log_write(news->logger, records[what].level, records[what].message, &field, 1);
    }
}

/* Attempts to connect repeat what they say: it is told when it is news. */
static bool is_repeated(enum storage_notice what)
{
    return what == STORAGE_CONNECT_FAILED || what == STORAGE_SETTINGS_DIFFER;
}

void redis_news_storage(void *data, enum storage_notice what, const char *detail)
{
    struct redis_news *news = data;
    if (what == STORAGE_CONNECT_FAILED && monotonic_ms() < news->starting_until_ms) {
        log_debug(news->logger, "Redis is starting", log_text("reason", detail));
    } else if (!is_repeated(what) || is_news(news, detail)) {
        tell(news, what, detail);
    }
    if (what == STORAGE_CONNECTED) {
        news->last_reason[0] = '\0';
        atomic_store(&news->connected, true);
    }
    if (what == STORAGE_SETTINGS_DIFFER) {
        atomic_store(&news->unfit, true);
    }
    if (what == STORAGE_CONNECTED || what == STORAGE_CLOCK) {
        atomic_store(&news->clock_news, true);
    }
    if (what == STORAGE_CONNECTED || what == STORAGE_SETTINGS_DIFFER || what == STORAGE_CLOCK) {
        (void)eventfd_write(news->fd, 1);
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
        if (report->cut > 0) {
            log_warn(news->logger, "took an unfinished write off the end of the append-only file",
                log_int("bytes", report->cut));
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
