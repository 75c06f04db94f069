/* app.h - what all handlers share: the storage, and limits and rules from the options.
 *
 * Layer: handlers.  Thread-safe: a struct app is constant.  The statistics and the memory of user
 * agents that it points to are atomic.
 *
 * The service may put another struct app in the place of this one (service/live.h).  A request
 * keeps the one that it began with.
 */
#ifndef HANDLERS_HTTP_APP_H
#define HANDLERS_HTTP_APP_H

#include <stdatomic.h>
#include <stdint.h>

#include "handlers/http/site_stats.h"
#include "handlers/text/network.h"
#include "handlers/text/robots_cache.h"
#include "storage/storage.h"

/* What handlers count.  A line without help belongs to the same metric as the line before.
 *   field              metric's name, label                                      help */
#define APP_STATS(X)                                                                               \
    X(events_accepted, "tallyd_events_accepted_total", "", "Events counted.")                      \
    X(rejected_invalid, "tallyd_events_rejected_total", "{reason=\"invalid\"}",                    \
        "Events rejected, by reason.")                                                             \
    X(rejected_strict, "tallyd_events_rejected_total", "{reason=\"strict\"}", NULL)                \
    X(dropped_robot, "tallyd_events_dropped_total", "{reason=\"robot\"}",                          \
        "Events that were valid but not to be counted, by reason.")                                \
    X(dropped_ignored, "tallyd_events_dropped_total", "{reason=\"ignored\"}", NULL)                \
    X(dropped_prefetch, "tallyd_events_dropped_total", "{reason=\"prefetch\"}", NULL)              \
    X(dropped_dnt, "tallyd_events_dropped_total", "{reason=\"dnt\"}", NULL)                        \
    X(dropped_other, "tallyd_events_dropped_total", "{reason=\"other\"}", NULL)                    \
    X(dropped_engagement, "tallyd_events_dropped_total", "{reason=\"engagement\"}", NULL)          \
    X(rejected_malformed, "tallyd_requests_rejected_total", "{reason=\"malformed\"}",              \
        "Requests with page views that were not answered 202, by reason: nothing of them was "     \
        "counted, but for unknown_outcome, where all or nothing is.")                              \
    X(rejected_too_many, "tallyd_requests_rejected_total", "{reason=\"too_many\"}", NULL)          \
    X(rejected_limited, "tallyd_requests_rejected_total", "{reason=\"limited\"}", NULL)            \
    X(rejected_unavailable, "tallyd_requests_rejected_total", "{reason=\"unavailable\"}", NULL)    \
    X(rejected_unknown, "tallyd_requests_rejected_total", "{reason=\"unknown_outcome\"}", NULL)

struct app_stats {
#define X(field, name, label, help) _Atomic int64_t field;
    APP_STATS(X)
#undef X
};

/* Add @n to a counter.  Only the sum is read, so its order with other memory does not matter. */
static inline void app_stats_add(_Atomic int64_t *counter, size_t n)
{
    (void)atomic_fetch_add_explicit(counter, (int64_t)n, memory_order_relaxed);
}

#define LIMIT_TEXT_SIZE 128

/* Limits with a name, and each part in the configuration's words: NUL-terminated, one blank between
 * two words, nothing that JSON would escape. */
struct limit_policy {
    struct slice name;
    struct limit_set set;
    char limit_text[LIMIT_SET_MAX][LIMIT_TEXT_SIZE];
    char penalty_text[LIMIT_TEXT_SIZE];
};

/* Which dimensions the page views of a site are counted by. */
struct dimension_plan {
    uint16_t counted;          /* bits 1 << enum dimension, without DIMENSION_PROP */
    uint16_t with_visitors;    /* the same: those whose values' visitors are counted, too */
    const struct slice *props; /* n_props names of properties, each a dimension of its own */
    size_t n_props;
};

/* A rule that makes one page of many, and the name of the pages that begin with a text: see
 * dimension/page_rules.h. */
struct page_rule {
    struct slice pattern, page;
};

struct page_section {
    struct slice name, prefix;
};

struct geo; /* the file that says in which country an address is: see dimension/geo.h */

/* The sites that the configuration names, in the order of slice_compare(): see
 * access/declared_site.h. */
struct declared_sites {
    const struct declared_site {
        struct slice name;
        struct slice *origins; /* n_origins of them: browsers on their pages need no token */
        size_t n_origins;
        struct dimension_plan plan;
    } * at;
    size_t n;
    bool any_origins; /* at least one site has origins */
};

#define REQUEST_EVENTS_MAX 10000 /* events of one request, at most: part of the API */

struct ops; /* what the endpoints of the service itself read: see service/ops/ops.h */

struct app {
    struct storage *storage;
    const struct ops *ops;
    size_t max_events;    /* a request with more events is refused */
    int64_t max_future_s; /* an event whose ts is further ahead is rejected */
    bool addresses;       /* distinct addresses are counted: GET /ips */
    bool seen;            /* events are remembered for GET /seen */
    struct app_stats *stats;
    struct site_stats *site_stats;
    struct robots_cache *robots;
    enum guard_by guard_by;   /* what the ingestion guard limits by; GUARD_OFF: no guard */
    struct limit guard_limit; /* the limit of the ingestion guard */
    const struct limit_policy *policies; /* n_policies of them */
    size_t n_policies;
    const struct slice *policy_names; /* n_policies + 1 of them: "" is for limits of no policy */
    const struct network *trusted;    /* n_trusted proxies whose X-Forwarded-For is believed */
    size_t n_trusted;
    const struct slice *origins; /* n_origins: their pages may read answers, see access/cors.h */
    size_t n_origins;
    bool respect_dnt; /* --respect-dnt: browsers that send DNT or Sec-GPC are not counted */
    const struct network *ignored; /* n_ignored networks: page views from there are dropped */
    size_t n_ignored;
    bool drop_robots; /* POST /events drops robots' page views, unless the request says otherwise */
    struct declared_sites sites;
    bool only_declared_sites;           /* events of sites that are not declared are rejected */
    struct dimension_plan plan;         /* the plan of the sites that are not declared */
    const struct slice *denied_sources; /* n_denied_sources hosts that are no source */
    size_t n_denied_sources;
    const struct page_rule *page_rules; /* n_page_rules of them; the first that fits a page holds */
    size_t n_page_rules;
    const struct page_section *sections; /* n_sections of them */
    size_t n_sections;
    const struct geo *geo; /* NULL: no file was given */
    bool country_header;   /* FIELD_COUNTRY of a trusted proxy says where a visitor is */
};

#endif
