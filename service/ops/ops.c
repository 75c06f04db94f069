#include "service/ops/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "handlers/http/app.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/query.h"
#include "handlers/reply/reply.h"
#include "service/http/server.h"
#include "service/log/log.h"
#include "service/ops/version.h"
#include "storage/base/buffer.h"
#include "storage/base/clock.h"

#define PROBE_AGE_MS 1000 /* the result of a probe holds for so long */
#define PROBE_MS     2000 /* the service is not ready if a probe takes longer */

static const struct ops *ops_of(const struct http_exchange *exchange)
{
    return exchange->app->ops;
}

static enum handler_result healthz_start(struct http_exchange *exchange)
{
    static const char text[] = "{\"status\":\"pass\"}";
    if (query_empty(exchange)) {
        reply_text(&exchange->response, 200, "application/json", text, sizeof(text) - 1);
    }
    return HANDLER_REPLY;
}

/* ---- /readyz ---- */

/* The lines of @text as a JSON array of texts.  NULL: out of memory. */
static json_t *list_of(const char *text)
{
    json_t *list = json_array();
    while (list != NULL && text[0] != '\0') {
        size_t n = strcspn(text, "\n");
        json_array_append_new(list, json_stringn(text, n));
        text += n + (text[n] == '\n');
    }
    return list;
}

static void reply_ready(
    struct http_exchange *exchange, enum storage_err err, const char *detail, const char *degraded)
{
    struct storage *storage = exchange->app->storage;
    if (err != STORAGE_OK) {
        problem_reply(&exchange->response, PROBLEM_UNAVAILABLE, "not ready: %s%s%s",
            storage_err_text(err), detail[0] == '\0' ? "" : ": ", detail);
        return;
    }
    reply_json(&exchange->response, 200,
        json_pack("{s:s,s:{s:I,s:I,s:I},s:o*}", "status", "ready", "rollup_lag_s", "hour",
            (json_int_t)storage_rollup_lag_s(storage, LEVEL_HOUR), "day",
            (json_int_t)storage_rollup_lag_s(storage, LEVEL_DAY), "month",
            (json_int_t)storage_rollup_lag_s(storage, LEVEL_MONTH), "degraded",
            degraded[0] == '\0' ? NULL : list_of(degraded)));
}

/* What the result @err of a probe is worth now.  @fault is storage_write_fault() when the probe was
 * begun.  A write that was refused since then, or no connection now, tells more than the probe. */
static enum storage_err probed(
    struct storage *storage, enum storage_err err, uint64_t fault, char *detail)
{
    enum storage_err last = STORAGE_OK;
    uint64_t now = storage_write_fault(storage, &last);
    if (err == STORAGE_OK && (now != fault || now == STORAGE_NO_WRITER)) {
        detail[0] = '\0';
        return last;
    }
    return err;
}

/* The client left before the probe came to its end, or the probe was never sent: the next request
 * probes. */
static void drop_probe(struct http_exchange *exchange)
{
    struct write_probe *probe = ops_of(exchange)->probe;
    pthread_mutex_lock(&probe->lock);
    probe->under_way = false;
    pthread_mutex_unlock(&probe->lock);
}

static enum handler_result readyz_start(struct http_exchange *exchange)
{
    struct write_probe *probe = ops_of(exchange)->probe;
    if (!query_empty(exchange)) {
        return HANDLER_REPLY;
    }
    int64_t now_ms = monotonic_ms();
    pthread_mutex_lock(&probe->lock);
    /* While a probe is under way the last result holds, but not a result of an hour ago. */
    int64_t holds_ms = probe->under_way ? PROBE_AGE_MS + PROBE_MS : PROBE_AGE_MS;
    bool fresh = probe->known && now_ms - probe->at_ms < holds_ms;
    enum storage_err err = probe->err;
    char detail[sizeof(probe->detail)];
    char degraded[sizeof(probe->degraded)];
    uint64_t fault = probe->fault;
    memcpy(detail, probe->detail, sizeof(detail));
    memcpy(degraded, probe->degraded, sizeof(degraded));
    if (!fresh) {
        enum storage_err ignored = STORAGE_OK;
        probe->under_way = true;
        probe->fault = storage_write_fault(exchange->app->storage, &ignored);
    }
    pthread_mutex_unlock(&probe->lock);
    if (fresh) {
        err = probed(exchange->app->storage, err, fault, detail);
        reply_ready(exchange, err, detail, degraded);
        return HANDLER_REPLY;
    }
    exchange->release = drop_probe;
    exchange->job.op = STORAGE_PROBE;
    exchange->job.u.probe.degraded[0] = '\0';
    exchange->job.deadline_ms = now_ms + PROBE_MS;
    return HANDLER_WAIT;
}

static void readyz_finish(struct http_exchange *exchange)
{
    struct write_probe *probe = ops_of(exchange)->probe;
    struct storage_job *job = &exchange->job;
    exchange->release = NULL; /* the next probe under way may be another request's */
    pthread_mutex_lock(&probe->lock);
    uint64_t fault = probe->fault;
    probe->under_way = false;
    probe->known = true;
    probe->err = job->err;
    memcpy(probe->detail, job->detail, sizeof(probe->detail));
    memcpy(probe->degraded, job->u.probe.degraded, sizeof(probe->degraded));
    probe->at_ms = monotonic_ms();
    pthread_mutex_unlock(&probe->lock);
    enum storage_err err = probed(exchange->app->storage, job->err, fault, job->detail);
    reply_ready(exchange, err, job->detail, job->u.probe.degraded);
}

/* ---- /metrics ---- */

/* Times are counted in microseconds and shown in seconds, Prometheus's unit. */
enum metric_kind { COUNTER, COUNTER_US, GAUGE, GAUGE_US };

static void metric(struct buffer *out, const char *name, const char *labels, enum metric_kind kind,
    const char *help, int64_t value)
{
    bool is_time = kind == COUNTER_US || kind == GAUGE_US;
    const char *type = kind == GAUGE || kind == GAUGE_US ? "gauge" : "counter";
    if (help != NULL) {
        metrics_put(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
    }
    if (is_time) {
        metrics_put(out, "%s%s %.6f\n", name, labels, (double)value / 1e6);
    } else {
        metrics_put(out, "%s%s %lld\n", name, labels, (long long)value);
    }
}

static void print_histogram(struct buffer *out, const char *name, const char *help,
    const struct storage_histogram *histogram)
{
    static const char *const bounds[] = {
#define X(us, text) text,
        STORAGE_BOUNDS(X)
#undef X
            "+Inf"};
    int64_t total = 0;
    metrics_put(out, "# HELP %s %s\n# TYPE %s histogram\n", name, help, name);
    for (size_t i = 0; i <= STORAGE_N_BOUNDS; i++) {
        total += atomic_load(&histogram->slower_than[i]);
        metrics_put(out, "%s_bucket{le=\"%s\"} %lld\n", name, bounds[i], (long long)total);
    }
    metrics_put(out, "%s_sum %.6f\n%s_count %lld\n", name,
        (double)atomic_load(&histogram->sum_us) / 1e6, name, (long long)total);
}

static void print_storage(struct storage *storage, struct buffer *out)
{
    const struct storage_stats *s = storage_stats(storage);
#define X(field, kind, name, help) metric(out, name, "", kind, help, atomic_load(&s->field));
    STORAGE_STATS(X)
#undef X
    metric(out, "tallyd_ingest_log_age_seconds", "", GAUGE_US,
        "For how long the oldest event that waits to be folded has waited.",
        storage_log_age_ms(storage) * 1000);
    print_histogram(out, "tallyd_fold_seconds", "Time that a fold took.", &s->fold_seconds);
    static const char name[] = "tallyd_rollup_lag_seconds";
    static const char help[] = "How far the slowest partition's watermark lies behind.";
    for (int level = LEVEL_HOUR; level < LEVELS; level++) {
        char label[32];
        (void)snprintf(label, sizeof(label), "{level=\"%s\"}", level_name((enum level)level));
        metric(out, name, label, GAUGE, level == LEVEL_HOUR ? help : NULL,
            storage_rollup_lag_s(storage, (enum level)level));
    }
}

static void print_app(const struct app_stats *s, struct buffer *out)
{
#define X(field, name, label, help) metric(out, name, label, COUNTER, help, atomic_load(&s->field));
    APP_STATS(X)
#undef X
}

static void print_sites(struct site_stats *s, struct buffer *out)
{
    char label[EVENT_SITE_MAX + 16] = "{site=\"" SITE_STATS_OTHER "\"}";
    metric(out, SITE_STATS_METRIC, label, COUNTER, SITE_STATS_HELP, atomic_load(&s->other));
    for (size_t i = 0; i < SITE_STATS_MAX; i++) {
        const struct site_stats_name *name = atomic_load(&s->slots[i].name);
        if (name == NULL) {
            return;
        }
        (void)snprintf(label, sizeof(label), "{site=\"%s\"}", name->text);
        metric(out, SITE_STATS_METRIC, label, COUNTER, NULL, atomic_load(&s->slots[i].events));
    }
}

static void print_server(const struct ops *ops, struct buffer *out)
{
    struct http_server *server = atomic_load(&ops->server);
    struct http_server_stats s = {0};
    if (server != NULL) {
        http_server_stats(server, &s);
    }
#define X(field, kind, name, help) metric(out, name, "", kind, help, s.field);
    HTTP_STATS(X)
#undef X
}

/* The process's resident memory: the second number of /proc/self/statm, in pages. */
static int64_t resident_bytes(void)
{
    char text[128];
    char *end = NULL;
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL) {
        return 0;
    }
    if (fgets(text, sizeof(text), file) != NULL) {
        (void)strtol(text, &end, 10);
        pages = strtol(end, NULL, 10);
    }
    (void)fclose(file);
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

static void print_process(const struct ops *ops, struct buffer *out)
{
    char label[64];
    (void)snprintf(label, sizeof(label), "{version=\"%s\"}", TALLYD_VERSION);
    metric(
        out, "tallyd_build_info", label, GAUGE, "Always 1; the label says which version runs.", 1);
    metric(out, "process_start_time_seconds", "", GAUGE, "When the process started, UTC.",
        ops->started_ms / 1000);
    metric(out, "process_resident_memory_bytes", "", GAUGE, "Resident memory.", resident_bytes());
    metric(out, "tallyd_log_lost_total", "", COUNTER,
        "Lines of the log that its descriptor did not take.", (int64_t)logger_lost(ops->logger));
}

static enum handler_result metrics_start(struct http_exchange *exchange)
{
    const struct ops *ops = ops_of(exchange);
    struct buffer out;
    if (!query_empty(exchange)) {
        return HANDLER_REPLY;
    }
    buffer_init(&out);
    print_app(exchange->app->stats, &out);
    print_sites(exchange->app->site_stats, &out);
    print_storage(exchange->app->storage, &out);
    print_server(ops, &out);
    print_process(ops, &out);
    http_metrics_print(ops->http, &out);
    if (out.failed) {
        (void)problem_no_memory(&exchange->response);
    } else {
        reply_text(
            &exchange->response, 200, "text/plain; version=0.0.4; charset=utf-8", out.p, out.n);
    }
    buffer_release(&out);
    return HANDLER_REPLY;
}

const struct route ops_routes[] = {
    {HTTP_GET, "/healthz", "getHealth", healthz_start, NULL, ROUTE_OPEN},
    {HTTP_GET, "/readyz", "getReadiness", readyz_start, readyz_finish, ROUTE_OPEN},
    {HTTP_GET, "/metrics", "getMetrics", metrics_start, NULL, ROUTE_OPEN | ROUTE_ALL_SITES},
};

const size_t n_ops_routes = sizeof(ops_routes) / sizeof(ops_routes[0]);
