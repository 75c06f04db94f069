/* routes.h - every endpoint about counts, one line each.
 *
 * Layer: handlers.
 *
 * A line of ENDPOINTS says all that HTTP has to know of an endpoint: method, path, operationId of
 * openapi.yaml, functions, and flags (see ROUTE_BODY and the others in http.h).  From these lines
 * the functions are declared, here, and the table of routes is made, in routes.c.  So a new
 * endpoint is a file in one of the folders, which includes this header, and a line.
 *
 *     WAITS      start() may ask storage and return HANDLER_WAIT; then finish() makes the answer
 *     REPLIES    start() makes the answer itself and always returns HANDLER_REPLY
 *
 * The router looks through the table from its beginning, so the endpoints that are asked most stand
 * first.
 */
#ifndef HANDLERS_ROUTES_H
#define HANDLERS_ROUTES_H

#include "handlers/http/http.h"

#define ENDPOINTS(WAITS, REPLIES)                                                                  \
    /* ingest/ */                                                                                  \
    WAITS(HTTP_POST, "/events", "postEvents", events_start, events_finish,                         \
        ROUTE_BODY | ROUTE_INGEST | ROUTE_GUARDED)                                                 \
    WAITS(HTTP_GET, "/pixel.gif", "getPixel", pixel_start, pixel_finish,                           \
        ROUTE_INGEST | ROUTE_BEACON | ROUTE_GIF | ROUTE_GUARDED)                                   \
    WAITS(HTTP_POST, "/api/event", "postPlausibleEvent", plausible_start, plausible_finish,        \
        ROUTE_BODY | ROUTE_INGEST | ROUTE_BEACON | ROUTE_GUARDED)                                  \
    WAITS(HTTP_POST, "/v1/{call}", "postSegment", segment_start, segment_finish,                   \
        ROUTE_BODY | ROUTE_INGEST | ROUTE_GUARDED | ROUTE_BASIC)                                   \
    REPLIES(HTTP_GET, "/tally.js", "getScript", tally_js_start, ROUTE_PUBLIC)                      \
    /* counts/ */                                                                                  \
    WAITS(HTTP_GET, "/uv", "getUv", uv_start, counts_finish, 0)                                    \
    WAITS(HTTP_GET, "/pv", "getPv", pv_start, counts_finish, 0)                                    \
    WAITS(HTTP_GET, "/ips", "getIps", ips_start, counts_finish, 0)                                 \
    WAITS(HTTP_GET, "/visits", "getVisits", visits_start, counts_finish, 0)                        \
    WAITS(HTTP_GET, "/stats", "getStats", stats_start, counts_finish, 0)                           \
    WAITS(HTTP_GET, "/pages", "getPages", pages_start, pages_finish, 0)                            \
    WAITS(HTTP_GET, "/overlap", "getOverlap", overlap_start, overlap_finish, 0)                    \
    WAITS(HTTP_GET, "/breakdown", "getBreakdown", breakdown_start, breakdown_finish, 0)            \
    WAITS(HTTP_GET, "/sites", "getSites", sites_start, sites_finish, 0)                            \
    WAITS(HTTP_GET, "/sites/{site}", "getSite", get_site_start, get_site_finish, 0)                \
    WAITS(HTTP_DELETE, "/sites/{site}", "deleteSite", delete_site_start, delete_site_finish, 0)    \
    WAITS(HTTP_DELETE, "/pages", "deletePages", delete_pages_start, delete_pages_finish, 0)        \
    WAITS(HTTP_PUT, "/pagesets/{name}", "putPageSet", page_set_put_start, page_set_put_finish,     \
        ROUTE_BODY)                                                                                \
    WAITS(HTTP_GET, "/pagesets/{name}", "getPageSet", page_set_get_start, page_set_get_finish, 0)  \
    WAITS(HTTP_DELETE, "/pagesets/{name}", "deletePageSet", page_set_delete_start,                 \
        page_set_delete_finish, 0)                                                                 \
    WAITS(HTTP_GET, "/seen", "getSeen", seen_start, seen_finish, 0)                                \
    WAITS(HTTP_POST, "/seen", "postSeen", seen_many_start, seen_finish, ROUTE_BODY | ROUTE_READ)   \
    WAITS(HTTP_GET, "/hotkeys", "getHotkeys", hotkeys_start, hotkeys_finish, 0)                    \
    WAITS(HTTP_GET, "/rollup", "getRollup", rollup_get_start, rollup_finish, ROUTE_ALL_SITES)      \
    WAITS(HTTP_POST, "/rollup", "postRollup", rollup_post_start, rollup_finish,                    \
        ROUTE_ADMIN | ROUTE_ALL_SITES)                                                             \
    WAITS(HTTP_GET, "/cluster", "getCluster", cluster_start, cluster_finish, ROUTE_ALL_SITES)      \
    /* limit/ */                                                                                   \
    WAITS(HTTP_POST, "/ratelimit", "postRateLimit", ratelimit_start, ratelimit_finish,             \
        ROUTE_BODY | ROUTE_INGEST)                                                                 \
    WAITS(HTTP_GET, "/ratelimit/check", "checkRateLimit", ratelimit_check_start,                   \
        ratelimit_check_finish, ROUTE_INGEST)                                                      \
    WAITS(HTTP_DELETE, "/ratelimit", "deleteRateLimit", ratelimit_reset_start,                     \
        ratelimit_reset_finish, 0)                                                                 \
    /* users/ */                                                                                   \
    WAITS(HTTP_GET, "/dau", "getDau", dau_start, dau_finish, 0)                                    \
    WAITS(HTTP_GET, "/active", "getActive", active_start, active_finish, 0)                        \
    WAITS(HTTP_GET, "/active/users", "getActiveUsers", active_users_start, active_users_finish, 0) \
    WAITS(HTTP_GET, "/retention", "getRetention", retention_start, retention_finish, 0)            \
    WAITS(HTTP_GET, "/funnel", "getFunnel", funnel_start, funnel_finish, 0)                        \
    WAITS(HTTP_GET, "/frequency", "getFrequency", frequency_start, frequency_finish, 0)            \
    WAITS(HTTP_GET, "/users/{user}/activity", "getUserActivity", user_activity_start,              \
        user_activity_finish, 0)                                                                   \
    WAITS(HTTP_DELETE, "/users/{user}/activity", "deleteUserActivity", take_back_start,            \
        take_back_finish, ROUTE_INGEST)                                                            \
    WAITS(HTTP_DELETE, "/users/{user}", "deleteUser", delete_user_start, delete_user_finish, 0)    \
    /* filter/ */                                                                                  \
    WAITS(HTTP_PUT, "/filters/{name}", "putFilter", filter_put_start, filter_finish, ROUTE_BODY)   \
    WAITS(HTTP_GET, "/filters/{name}", "getFilter", filter_get_start, filter_finish, 0)            \
    WAITS(HTTP_DELETE, "/filters/{name}", "deleteFilter", filter_delete_start, filter_finish, 0)   \
    WAITS(HTTP_POST, "/filters/{name}/add", "addToFilter", filter_add_start, filter_finish,        \
        ROUTE_BODY | ROUTE_INGEST)                                                                 \
    WAITS(HTTP_POST, "/filters/{name}/check", "checkFilter", filter_check_start, filter_finish,    \
        ROUTE_BODY | ROUTE_READ)                                                                   \
    /* grafana/ */                                                                                 \
    REPLIES(HTTP_GET, "/grafana", "getGrafana", grafana_test_start, ROUTE_SLASH)                   \
    WAITS(HTTP_POST, "/grafana/query", "postGrafanaQuery", grafana_query_start,                    \
        grafana_query_finish, ROUTE_BODY | ROUTE_READ | ROUTE_SLASH)                               \
    REPLIES(HTTP_POST, "/grafana/metrics", "postGrafanaMetrics", grafana_metrics_start,            \
        ROUTE_BODY | ROUTE_READ | ROUTE_SLASH)                                                     \
    REPLIES(HTTP_POST, "/grafana/annotations", "postGrafanaAnnotations",                           \
        grafana_annotations_start, ROUTE_BODY | ROUTE_READ | ROUTE_SLASH)                          \
    REPLIES(HTTP_POST, "/grafana/tag-keys", "postGrafanaTagKeys", grafana_tag_keys_start,          \
        ROUTE_BODY | ROUTE_READ | ROUTE_SLASH)                                                     \
    WAITS(HTTP_POST, "/grafana/variable", "postGrafanaVariable", grafana_variable_start,           \
        grafana_list_finish, ROUTE_BODY | ROUTE_READ | ROUTE_SLASH)                                \
    WAITS(HTTP_POST, "/grafana/search", "postGrafanaSearch", grafana_search_start,                 \
        grafana_list_finish, ROUTE_BODY | ROUTE_READ | ROUTE_SLASH)                                \
    WAITS(HTTP_POST, "/grafana/metric-payload-options", "postGrafanaOptions",                      \
        grafana_options_start, grafana_list_finish, ROUTE_BODY | ROUTE_READ | ROUTE_SLASH)         \
    WAITS(HTTP_POST, "/grafana/tag-values", "postGrafanaTagValues", grafana_tag_values_start,      \
        grafana_list_finish, ROUTE_BODY | ROUTE_READ | ROUTE_SLASH)                                \
    /* web/ */                                                                                     \
    REPLIES(HTTP_GET, "/", "getDashboard", dashboard_start, ROUTE_PUBLIC)                          \
    REPLIES(HTTP_GET, "/ops", "getOperatorsPage", ops_page_start, ROUTE_PUBLIC)                    \
    REPLIES(HTTP_GET, "/web/{file}", "getDashboardFile", dashboard_file_start, ROUTE_PUBLIC)

/* Some endpoints share a finish(), which is declared more than once then.  C allows that. */
#define WAITS(method, path, operation, start, finish, flags)                                       \
    enum handler_result start(struct http_exchange *exchange);                                     \
    void finish(struct http_exchange *exchange);
#define REPLIES(method, path, operation, start, flags)                                             \
    enum handler_result start(struct http_exchange *exchange);
ENDPOINTS(WAITS, REPLIES)
#undef WAITS
#undef REPLIES

extern const struct route api_routes[];
extern const size_t n_api_routes;

#endif
