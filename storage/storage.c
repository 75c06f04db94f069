#include "storage/storage.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "storage/base/clock.h"
#include "storage/log/close.h"
#include "storage/operations.h"
#include "storage/read/answers.h"
#include "storage/read/cache.h"
#include "storage/schema/settings.h"
#include "storage/session/server.h"
#include "storage/storage_state.h"

#define CATCH_UP_MS  1500 /* at the end, time to count what was acknowledged */
#define CLOSE_LOG_MS 500  /* at the end, time to close the logs */

/* Start the leader and the rollup. */
static bool start_leading(struct storage *s, const char **ret_error)
{
    const char *urls = s->core.config.lock_urls;
    s->leader = leader_start(&s->core, urls == NULL ? "" : urls, ret_error);
    s->core.config.lock_urls = NULL;
    if (s->leader != NULL) {
        atomic_store(&s->core.leader, s->leader);
        s->rollup = rollup_start(&s->core, s->leader);
    }
    return s->rollup != NULL;
}

/* Load the zones of the sites that have one. */
static bool load_zones(
    struct storage *s, const struct storage_config *config, const char **ret_error)
{
    *ret_error = "out of memory";
    if (!site_zones_init(&s->core.sites)) {
        return false;
    }
    for (size_t i = 0; i < config->n_site_zones; i++) {
        const struct storage_site_zone *is = &config->site_zones[i];
        const struct zone *zone = zone_store_get(s->zones, slice_of(is->zone), ret_error);
        if (zone == NULL || !site_zones_add(&s->core.sites, slice_of(is->site), zone)) {
            return false;
        }
    }
    return true;
}

static void entry_arrived(void *data)
{
    struct storage *s = data;
    fold_wake(s->fold);
}

static enum storage_err catch_up(void *data, int64_t before_us, int64_t deadline_ms)
{
    struct storage *s = data;
    return fold_catch_up(s->fold, before_us, deadline_ms);
}

/* Start the threads that write: seen_fold, the fold, the senders and the writers; and the guard. */
static bool start_writing(struct storage *s)
{
    s->unfolded.n_logs = core_logs(&s->core);
    s->unfolded.arrived = entry_arrived;
    s->unfolded.arrived_data = s;
    s->seen_fold = s->core.config.seen.on ? seen_fold_start(&s->core) : NULL;
    s->fold = fold_start(&s->core, &s->unfolded, s->seen_fold);
    if (s->fold == NULL) {
        return false;
    }
    s->core.catch_up = catch_up;
    s->core.catch_up_data = s;
    if (s->core.config.guard_by != GUARD_OFF) {
        s->guard = guard_new(&s->core, storage_send, s);
        if (s->guard == NULL) {
            return false;
        }
    }
    s->limits = limit_senders_start(&s->core, s->guard);
    s->writers = s->limits == NULL ? NULL : writers_start(&s->core, &s->unfolded);
    return s->writers != NULL;
}

static bool storage_start(
    struct storage *s, const struct storage_config *config, const char **ret_error)
{
    long cores = sysconf(_SC_NPROCESSORS_CONF);
    if (sodium_init() < 0) {
        *ret_error = "libsodium cannot be used: it found no source of random numbers";
        return false;
    }
    partitions_make(config->partitions, &s->core.partitions);
    if (!servers_start(&s->core, config->redis_url, ret_error) ||
        !load_zones(s, config, ret_error)) {
        return false;
    }
    settings_print(
        config->partitions, &config->retention, site_zones_digest(&s->core.sites), s->core.cfg);
    *ret_error = "threads could not be started, or no memory";
    s->core.cache = config->cache_bytes > 0 ? cache_new(config->cache_bytes) : NULL;
    s->core.answers = s->core.cache != NULL ? answers_new() : NULL;
    s->hot = hot_pages_new(cores > 0 ? (unsigned)cores : 1, monotonic_ms());
    if (s->hot == NULL || !start_writing(s)) {
        return false;
    }
    s->hot_fleet = hot_fleet_start(&s->core, s->hot);
    if (s->hot_fleet == NULL) {
        return false;
    }
    s->readers = readers_start(&s->core, storage_operations, config->readers);
    s->prober = readers_start(&s->core, storage_operations, 1);
    return s->readers != NULL && s->prober != NULL &&
           (!config->lead || start_leading(s, ret_error));
}

struct storage *storage_open(const struct storage_config *config, const char **ret_error)
{
    struct storage *s = calloc(1, sizeof(*s));
    *ret_error = "out of memory";
    if (s == NULL || (s->zones = zone_store_new(NULL)) == NULL) {
        free(s);
        return NULL;
    }
    s->core.config = *config;
    s->core.config.redis_url = NULL;  /* core.url has what is needed of the text */
    s->core.config.site_zones = NULL; /* core.sites has the zones */
    core_init(&s->core);
    unfolded_init(&s->unfolded, &s->core.stats);
    s->core.unfolded = &s->unfolded;
    if (!storage_start(s, config, ret_error)) {
        storage_close(s);
        return NULL;
    }
    return s;
}

void storage_flush(struct storage *s)
{
    writers_flush(s->writers);
}

enum guard_verdict storage_guard_try(
    struct storage *s, const struct guard_charge *charges, size_t n, struct limit_state *ret_state)
{
    if (s->guard == NULL) {
        *ret_state = (struct limit_state){.allowed = true};
        return GUARD_ADMITTED;
    }
    return guard_try(s->guard, charges, n, ret_state);
}

bool storage_guard_closed(struct storage *s, struct slice who, struct limit_state *ret_state)
{
    return s->guard != NULL && guard_closed(s->guard, who, ret_state);
}

void storage_guard_set_limit(struct storage *s, const struct limit *limit)
{
    if (s->guard != NULL) {
        guard_set_limit(s->guard, limit);
    }
}

void storage_guard_peek(struct storage *s, struct slice who, struct limit_state *ret_state)
{
    *ret_state = (struct limit_state){.allowed = true};
    if (s->guard != NULL) {
        guard_peek(s->guard, who, ret_state);
    }
}

const struct zone *storage_zone(struct storage *s, struct slice name, const char **ret_fault)
{
    return zone_store_get(s->zones, name, ret_fault);
}

const struct zone *storage_site_zone(struct storage *s, struct slice site)
{
    return site_zones_get(&s->core.sites, site);
}

int64_t storage_now_ms(struct storage *s)
{
    return redis_clock_ms(&s->core.clock);
}

int64_t storage_oldest_s(struct storage *s, int64_t now_s)
{
    int64_t oldest_s = INT64_MAX;
    for (int level = LEVEL_MINUTE; level < LEVELS; level++) {
        int64_t start_s = core_oldest_s(&s->core, (enum level)level, now_s);
        if (start_s == INT64_MIN) {
            return INT64_MIN;
        }
        start_s = site_zones_start(&s->core.sites, (enum level)level, start_s);
        oldest_s = start_s < oldest_s ? start_s : oldest_s;
    }
    return oldest_s;
}

int64_t storage_days_from_s(struct storage *s, int64_t now_s)
{
    int64_t keep_s = s->core.config.retention.keep_s[LEVEL_DAY]; /* no bitmap has an expiry */
    return keep_s == KEEP_FOREVER ? INT64_MIN : now_s - keep_s;
}

uint64_t storage_write_fault(struct storage *s, enum storage_err *ret_err)
{
    uint64_t fault = atomic_load(&s->core.write_fault);
    bool ready = atomic_load(&s->core.ready);
    bool alone = atomic_load(&s->core.lacks_replicas);
    *ret_err = !ready ? STORAGE_DOWN : alone ? STORAGE_ALONE : (enum storage_err)(fault & 255);
    return !ready || alone ? STORAGE_NO_WRITER : s->core.is_spread ? 0 : fault;
}

bool storage_spans_rotation(struct storage *s, struct window window)
{
    enum rotation rotation = s->core.config.rotation;
    int64_t start_s = rotation_start_s(rotation, window.from_s);
    return start_s != rotation_start_s(rotation, window.to_s - 1) ||
           period_secrets_is_late(&s->core.period_secrets, start_s);
}

int64_t storage_log_age_ms(struct storage *s)
{
    return unfolded_age_ms(&s->unfolded);
}

int64_t storage_rollup_lag_s(struct storage *s, enum level level)
{
    return core_rollup_lag_s(&s->core, level);
}

struct storage_stats *storage_stats(struct storage *s)
{
    return &s->core.stats;
}

void storage_quiesce(struct storage *s)
{
    if (s->rollup != NULL) {
        rollup_drain(s->rollup);
    }
}

void storage_drain(struct storage *s, int64_t deadline_ms)
{
    storage_quiesce(s);
    if (s->guard != NULL) {
        guard_give_back(s->guard);
    }
    limit_senders_drain(s->limits, deadline_ms);
    writers_drain(s->writers, deadline_ms);
    if (atomic_load(&s->core.stats.log_events) > 0 || unfolded_age_ms(&s->unfolded) > 0) {
        /* What is not counted in time, another process will count. */
        (void)!fold_catch_up(s->fold, monotonic_us(), monotonic_ms() + CATCH_UP_MS);
    }
    readers_drain(s->readers, deadline_ms);
    readers_drain(s->prober, deadline_ms);
}

void storage_close(struct storage *s)
{
    if (s == NULL) {
        return;
    }
    atomic_store(&s->core.stopping, true);
    if (s->rollup != NULL) {
        rollup_stop(s->rollup);
    }
    atomic_store(&s->core.leader, NULL);
    if (s->leader != NULL) {
        leader_stop(s->leader);
    }
    if (s->readers != NULL) {
        readers_stop(s->readers);
    }
    if (s->prober != NULL) {
        readers_stop(s->prober);
    }
    if (s->hot_fleet != NULL) {
        hot_fleet_stop(s->hot_fleet);
    }
    if (s->writers != NULL) {
        writers_stop(s->writers); /* before the fold, which the writers tell what has arrived */
        log_close_own(&s->core, &s->unfolded, monotonic_ms() + CLOSE_LOG_MS);
    }
    if (s->limits != NULL) {
        limit_senders_stop(s->limits);
    }
    if (s->fold != NULL) {
        fold_stop(s->fold);
    }
    guard_free(s->guard);
    if (s->seen_fold != NULL) {
        seen_fold_stop(s->seen_fold); /* behind the fold, which tells seen_fold what is due */
    }
    answers_free(s->core.answers);
    cache_free(s->core.cache);
    unfolded_release(&s->unfolded);
    servers_stop(&s->core);
    core_release(&s->core);
    hot_pages_free(s->hot);
    zone_store_free(s->zones);
    free(s);
}
