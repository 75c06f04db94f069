#include "service/redis/redis_news.h"

#include <string.h>
#include <sys/eventfd.h>
#include <xxhash.h>

#include "storage/base/clock.h"
#include "storage/base/cond.h"
#include "storage/job/error.h"

#define REASON_MS        60000
#define CLOCKS_DIFFER_MS 5000

void redis_news_init(struct redis_news *news)
{
    news->fd = -1;
    mutex_init(&news->lock);
}

/* Was @reason not told in the last minute?  Then it counts as told now, and takes the place of the
 * oldest reason. */
static bool is_news(struct redis_news *news, enum storage_notice what, const char *reason)
{
    const int64_t now_ms = monotonic_ms();
    const uint64_t hash = XXH3_64bits_withSeed(reason, strlen(reason), what);
    size_t oldest = 0;
    bool is = true;
    pthread_mutex_lock(&news->lock);
    for (size_t i = 0; i < REDIS_NEWS_TOLD; i++) {
        bool is_fresh = news->told[i].at_ms != 0 && now_ms - news->told[i].at_ms < REASON_MS;
        is = is && !(is_fresh && news->told[i].hash == hash);
        oldest = news->told[i].at_ms < news->told[oldest].at_ms ? i : oldest;
    }
    if (is) {
        news->told[oldest].hash = hash;
        news->told[oldest].at_ms = now_ms;
    }
    pthread_mutex_unlock(&news->lock);
    return is;
}

/* The reasons that were told are over: each of them is news again. */
static void forget_told(struct redis_news *news)
{
    pthread_mutex_lock(&news->lock);
    memset(news->told, 0, sizeof(news->told));
    pthread_mutex_unlock(&news->lock);
}

/* The record that tells of a notice.  A field without a value gets the notice's detail.  A notice
 * without a message is not told.  A notice that repeats, because storage tries again, is told only
 * when its reason is news, with the address of Redis. */
static const struct {
    enum log_level level;
    const char *message;
    struct log_field field;
    bool repeats;
} records[STORAGE_NOTICES] = {
    [STORAGE_CONNECTED] = {LOG_LEVEL_INFO, "connected to Redis",
        {.key = "redis", .value.text = {"ready", 5}}},
    [STORAGE_DISCONNECTED] = {LOG_LEVEL_WARN, "lost the connection to Redis",
        {.key = "redis", .value.text = {"lost", 4}}},
    [STORAGE_CONNECT_FAILED] = {LOG_LEVEL_WARN, "cannot use Redis; trying again", {.key = "reason"},
        .repeats = true},
    [STORAGE_LINK_FAILED] = {LOG_LEVEL_WARN, "cannot open another connection to Redis",
        {.key = "reason"}, .repeats = true},
    [STORAGE_SETTINGS_DIFFER] = {LOG_LEVEL_ERROR,
        "this Redis or its data is not for this process; not serving", {.key = "reason"},
        .repeats = true},
    [STORAGE_REFUSING] = {LOG_LEVEL_WARN, "Redis refuses a write", {.key = "reason"},
        .repeats = true},
    [STORAGE_TAKES_WRITES] = {LOG_LEVEL_INFO, "Redis takes writes again",
        {.key = "redis", .value.text = {"ready", 5}}},
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
    struct log_field fields[] = {records[what].field, log_text("server", news->server)};
    if (fields[0].type == LOG_TEXT && fields[0].value.text.p == NULL) {
        fields[0] = log_text(fields[0].key, detail);
    }
    if (records[what].message != NULL) {
        log_write(news->logger, records[what].level, records[what].message, fields,
            records[what].repeats ? 2 : 1);
    }
}

void redis_news_storage(void *data, enum storage_notice what, const char *detail)
{
    struct redis_news *news = data;
    if (what == STORAGE_CONNECT_FAILED && monotonic_ms() < news->starting_until_ms) {
        log_debug(news->logger, "Redis is starting", log_text("reason", detail));
    } else if (!records[what].repeats || is_news(news, what, detail)) {
        tell(news, what, detail);
    }
    if (what == STORAGE_CONNECTED || what == STORAGE_TAKES_WRITES) {
        forget_told(news);
    }
    if (what == STORAGE_CONNECTED) {
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
        storage_err_note_disk(report->disk_full); /* then answers name the full disk, too */
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

/* Times of arrival, windows and expiries are taken from Redis's clock.  People who look at this
 * machine's clock should know when the two differ. */
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
