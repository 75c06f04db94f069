#include "service/ops/http_metrics.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "service/http/router.h"

#define STATUS_MIN 100
#define STATUS_MAX 600

/* Upper bounds of the histogram's buckets: from far below one append to the default deadline. */
static const struct {
    int64_t us;
    const char *text; /* seconds */
} bounds[] = {
    {250, "0.00025"},
    {500, "0.0005"},
    {1000, "0.001"},
    {2500, "0.0025"},
    {5000, "0.005"},
    {10000, "0.01"},
    {25000, "0.025"},
    {50000, "0.05"},
    {100000, "0.1"},
    {250000, "0.25"},
    {500000, "0.5"},
    {1000000, "1"},
    {2500000, "2.5"},
    {5000000, "5"},
    {10000000, "10"},
};
#define N_BOUNDS (sizeof(bounds) / sizeof(bounds[0]))

struct route_metrics {
    _Atomic int64_t answers[STATUS_MAX - STATUS_MIN];
    _Atomic int64_t slower_than[N_BOUNDS + 1]; /* [i]: above bounds[i - 1], up to bounds[i] */
    _Atomic int64_t sum_us;
};

struct http_metrics {
    const struct route *routes;
    size_t n;
    struct route_metrics by_route[];
};

struct http_metrics *http_metrics_new(const struct route *routes, size_t n_routes)
{
    struct http_metrics *m = calloc(1, sizeof(*m) + (n_routes + 1) * sizeof(m->by_route[0]));
    if (m != NULL) {
        m->routes = routes;
        m->n = n_routes;
    }
    return m;
}

void http_metrics_free(struct http_metrics *metrics)
{
    free(metrics);
}

static void add(_Atomic int64_t *counter, int64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static int64_t get(const _Atomic int64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void http_metrics_observe(struct http_metrics *m, size_t route, unsigned status, int64_t latency_us)
{
    struct route_metrics *r = &m->by_route[route < m->n ? route : m->n];
    size_t i = 0;
    while (i < N_BOUNDS && latency_us > bounds[i].us) {
        i++;
    }
    add(&r->slower_than[i], 1);
    add(&r->sum_us, latency_us);
    if (status >= STATUS_MIN && status < STATUS_MAX) {
        add(&r->answers[status - STATUS_MIN], 1);
    }
}

void metrics_put(struct buffer *out, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    buffer_text(out, text);
}

static void print_answers(
    const struct http_metrics *m, size_t route, const char *labels, struct buffer *out)
{
    for (unsigned s = STATUS_MIN; s < STATUS_MAX; s++) {
        int64_t n = get(&m->by_route[route].answers[s - STATUS_MIN]);
        if (n > 0) {
            metrics_put(
                out, "tallyd_http_requests_total{%s,code=\"%u\"} %lld\n", labels, s, (long long)n);
        }
    }
}

static void print_latency(
    const struct http_metrics *m, size_t route, const char *labels, struct buffer *out)
{
    const struct route_metrics *r = &m->by_route[route];
    int64_t n = 0;
    for (size_t i = 0; i <= N_BOUNDS; i++) {
        n += get(&r->slower_than[i]);
        metrics_put(out, "tallyd_http_request_duration_seconds_bucket{%s,le=\"%s\"} %lld\n", labels,
            i < N_BOUNDS ? bounds[i].text : "+Inf", (long long)n);
    }
    metrics_put(out,
        "tallyd_http_request_duration_seconds_sum{%s} %.6f\n"
        "tallyd_http_request_duration_seconds_count{%s} %lld\n",
        labels, (double)get(&r->sum_us) / 1e6, labels, (long long)n);
}

static void each_route(const struct http_metrics *m, struct buffer *out,
    void (*print)(const struct http_metrics *, size_t, const char *, struct buffer *))
{
    char labels[128];
    for (size_t i = 0; i < m->n; i++) {
        (void)snprintf(labels, sizeof(labels), "method=\"%s\",route=\"%s\"",
            router_method_name(m->routes[i].method), m->routes[i].path);
        print(m, i, labels, out);
    }
    print(m, m->n, "method=\"\",route=\"\"", out);
}

void http_metrics_print(const struct http_metrics *m, struct buffer *out)
{
    buffer_text(out, "# HELP tallyd_http_requests_total Requests answered, by route and status; no "
                     "route: refused before one was found.\n"
                     "# TYPE tallyd_http_requests_total counter\n");
    each_route(m, out, print_answers);
    buffer_text(out,
        "# HELP tallyd_http_request_duration_seconds Time from the request line to the "
        "answer's end.\n"
        "# TYPE tallyd_http_request_duration_seconds histogram\n");
    each_route(m, out, print_latency);
}
