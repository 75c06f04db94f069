#include "service/parts.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "handlers/dimension/geo.h"
#include "handlers/routes.h"
#include "service/http/strict.h"
#include "service/ops/api_description.h"
#include "service/options/option_table.h"
#include "service/options/option_value.h"
#include "service/options/redis_url.h"
#include "storage/base/clock.h"
#include "storage/base/cond.h"
#include "storage/storage.h"

#define IDLE_TIMEOUT_MS 75000
#define REDIS_STOP_MS   10000
#define HTTP_STOP_MS    1000
#define DRAIN_MIN_MS    1000
#define REDIS_START_MS  2000 /* an embedded Redis that listens later is worth a warning */
#define THREADS_MAX     4

/* Start the embedded Redis, unless --redis names a server.  0, or the exit status. */
static int start_redis(struct service *s)
{
    char error[REDIS_CHILD_TEXT];
    struct redis_child_report report;
    if (s->options.redis[0] != '\0') {
        s->redis_url = s->options.redis;
        redis_url_mask(s->redis_url, s->news.server, sizeof(s->news.server));
        return 0;
    }
    (void)snprintf(s->news.server, sizeof(s->news.server), "embedded");
    struct redis_child_config config = {
        .data_dir = s->options.data_dir,
        .server = s->options.redis_server,
        .maxmemory = s->options.redis_memory,
        .fsync = s->options.fsync,
    };
    s->child = redis_child_open(&config, error);
    if (s->child == NULL) {
        (void)fprintf(stderr, "tallyd: %s\n", error);
        return 2;
    }
    s->news.starting_until_ms = monotonic_ms() + REDIS_START_MS;
    bool ok = redis_child_start(s->child, monotonic_ms(), &report);
    redis_news_child(&s->news, &report);
    s->redis_url = redis_child_url(s->child);
    return ok ? 0 : 1;
}

/* The `site.<name>.tz` lines.  The caller frees the array.  NULL: out of memory. */
static struct storage_site_zone *site_zones(const struct options *options, size_t *ret_n)
{
    struct storage_site_zone *zones = calloc(options->n_entries + 1, sizeof(*zones));
    *ret_n = 0;
    for (size_t i = 0; zones != NULL && i < options->n_entries; i++) {
        const struct option_entry *entry = &options->entries[i];
        if (entry->family == &option_families[OPTION_FAMILY_SITE_TZ]) {
            zones[(*ret_n)++] = (struct storage_site_zone){entry->name, entry->value};
        }
    }
    return zones;
}

static bool start_storage(struct service *s)
{
    const char *error = "out of memory";
    const struct options *o = &s->options;
    size_t n_zones = 0;
    struct storage_site_zone *zones = site_zones(o, &n_zones);
    struct storage_config config = {
        .redis_url = s->redis_url,
        .partitions = (unsigned)o->partitions,
        .retention = o->retention,
        .visit_timeout_s = o->visit_timeout_s,
        .rotation = o->visitor_rotation,
        .addresses = o->ips != 0,
        .aof_rewrite = o->aof_rewrite != 0,
        .seen = {.on = o->seen != 0,
            .capacity = (uint64_t)o->seen_capacity,
            .keep_s = o->keep_seen_s},
        .max_pages = (uint64_t)o->max_pages,
        .max_values = (uint64_t)o->max_values,
        .max_events = (uint64_t)o->max_events,
        .queue_events = (size_t)o->queue,
        .log_hold_ms = o->log_hold_ms,
        .ack_replicas = (unsigned)o->ack_replicas,
        .cache_bytes = (size_t)o->cache_mb << 20,
        .guard_by = s->guard_by,
        .guard_limit = s->guard_limit,
        .readers = (unsigned)o->readers,
        .lead = true,
        .lock_urls = o->lock_redis,
        .notice = redis_news_storage,
        .notice_data = &s->news,
        .site_zones = zones,
        .n_site_zones = n_zones,
    };
    bool ready = zones != NULL && option_parse_rate(o->seen_error, &config.seen.error);
    s->app.storage = ready ? storage_open(&config, &error) : NULL;
    free(zones);
    if (s->app.storage == NULL) {
        log_error(s->logger, "storage could not be opened", log_text("reason", error));
    }
    return s->app.storage != NULL;
}

static bool join_routes(struct service *s)
{
    const struct {
        const struct route *routes;
        size_t n;
    } tables[] = {
        {api_routes, n_api_routes},
        {ops_routes, n_ops_routes},
        {api_description_routes, n_api_description_routes},
    };
    const size_t n_tables = sizeof(tables) / sizeof(tables[0]);
    size_t n = 0;
    for (size_t i = 0; i < n_tables; i++) {
        n += tables[i].n;
    }
    s->routes = malloc(n * sizeof(*s->routes));
    if (s->routes == NULL) {
        return false;
    }
    for (size_t i = 0; i < n_tables; i++) {
        memcpy(s->routes + s->n_routes, tables[i].routes, tables[i].n * sizeof(*s->routes));
        s->n_routes += tables[i].n;
    }
    s->ops.http = http_metrics_new(s->routes, s->n_routes);
    return s->ops.http != NULL;
}

static unsigned default_threads(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 1 ? 1 : cores > THREADS_MAX ? THREADS_MAX : (unsigned)cores;
}

/* Open the database of countries, if --geo-db names one.  0, or the exit status. */
static int open_geo(struct service *s)
{
    const char *error = NULL;
    const char *path = s->options.geo_db;
    if (path[0] == '\0') {
        return 0;
    }
    s->geo = geo_open(path, &error);
    if (s->geo == NULL) {
        (void)fprintf(stderr, "tallyd: --geo-db %s: %s\n", path, error);
        return 2;
    }
    s->app.geo = s->geo;
    return 0;
}

/* The field in which proxies tell the country is compared without case. */
static void set_country_field(struct service *s)
{
    s->app.country_header = s->options.country_header[0] != '\0';
    http_country_field(slice_of(s->options.country_header));
}

/* Fill in what the handlers share.  False: out of memory. */
static bool fill_app(struct service *s)
{
    const struct options *o = &s->options;
    s->app.max_events = REQUEST_EVENTS_MAX;
    s->app.addresses = o->ips != 0;
    s->app.seen = o->seen != 0;
    s->app.stats = &s->stats;
    s->app.site_stats = &s->site_stats;
    unsigned char key[ROBOTS_CACHE_KEY_BYTES];
    randombytes_buf(key, sizeof(key));
    robots_cache_init(&s->robots, key);
    s->app.robots = &s->robots;
    s->app.guard_by = s->guard_by;
    s->app.guard_limit = s->guard_limit;
    set_country_field(s);
    s->ops.started_ms = log_now_ms();
    s->ops.probe = &s->probe;
    s->ops.logger = s->logger;
    s->app.ops = &s->ops;
    s->live = live_new(&s->app, o, NULL);
    mutex_init(&s->probe.lock);
    return s->live != NULL && join_routes(s);
}

static bool start_server(struct service *s)
{
    const char *error = NULL;
    const struct options *o = &s->options;
    if (!fill_app(s)) {
        log_error(s->logger, "out of memory", log_text("for", "the HTTP server"));
        return false;
    }
    struct http_server_config config = {
        .host = s->listen.host,
        .port = s->listen.port,
        .threads = o->threads == 0 ? default_threads() : (unsigned)o->threads,
        .max_connections = (unsigned)o->max_connections,
        .max_body = (size_t)o->max_body,
        .max_body_memory = (size_t)o->max_body_memory,
        .request_timeout_ms = o->request_timeout_ms,
        .idle_timeout_ms = IDLE_TIMEOUT_MS,
        .app = live_app(s->live),
        .tokens = s->tokens,
        .routes = s->routes,
        .n_routes = s->n_routes,
        .submit = storage_submit,
        .flush = storage_flush,
        .now_ms = storage_now_ms,
        .storage = s->app.storage,
        .observe = http_metrics_observe,
        .metrics = s->ops.http,
    };
    s->server = http_server_start(&config, &error);
    if (s->server == NULL) {
        (void)fprintf(stderr, "tallyd: cannot listen on %s: %s\n", o->listen, error);
        return false;
    }
    atomic_store(&s->ops.server, s->server);
    return true;
}

int service_start(struct service *s)
{
    int status = open_geo(s);
    if (status == 0) {
        status = start_redis(s);
    }
    if (status == 0) {
        status = start_storage(s) && start_server(s) ? 0 : 1;
    }
    return status;
}

void service_stop(struct service *s)
{
    struct redis_child_report report;
    int64_t until_ms = monotonic_ms() + s->options.request_timeout_ms;
    if (s->server != NULL) { /* requests under way may finish: each has its deadline */
        http_server_quiesce(s->server);
        storage_quiesce(s->app.storage);
        http_server_wait_idle(s->server, s->options.request_timeout_ms);
    }
    if (s->app.storage != NULL) { /* jobs have deadlines; what no job awaits gets DRAIN_MIN_MS */
        int64_t least_ms = monotonic_ms() + DRAIN_MIN_MS;
        storage_drain(s->app.storage, until_ms > least_ms ? until_ms : least_ms);
    }
    atomic_store(&s->ops.server, NULL);
    http_server_stop(s->server, HTTP_STOP_MS);
    storage_close(s->app.storage);
    if (s->child != NULL) {
        redis_child_stop(s->child, monotonic_ms() + REDIS_STOP_MS, &report);
        redis_child_close(s->child);
    }
    http_metrics_free(s->ops.http);
    free(s->routes);
    live_free(s->live);
    site_stats_release(&s->site_stats);
    geo_close(s->geo);
}
