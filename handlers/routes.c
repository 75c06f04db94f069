#include "handlers/routes.h"

#include "handlers/counts/counts.h"
#include "handlers/counts/hotkeys.h"
#include "handlers/counts/overlap.h"
#include "handlers/counts/page_sets.h"
#include "handlers/counts/pages.h"
#include "handlers/counts/rollup.h"
#include "handlers/counts/seen.h"
#include "handlers/counts/sites.h"
#include "handlers/filter/filters.h"
#include "handlers/grafana/grafana.h"
#include "handlers/grafana/lists.h"
#include "handlers/ingest/events.h"
#include "handlers/ingest/pixel.h"
#include "handlers/ingest/plausible.h"
#include "handlers/ingest/tally_js.h"
#include "handlers/limit/ratelimit.h"
#include "handlers/users/active.h"
#include "handlers/users/retention.h"
#include "handlers/users/users.h"
#include "handlers/web/dashboard.h"

const struct route api_routes[] = {
    /* method   path       operation    start          finish          flags */
    {HTTP_POST, "/events", "postEvents", events_start, events_finish,
        ROUTE_BODY | ROUTE_INGEST | ROUTE_GUARDED},
    {HTTP_GET, "/pixel.gif", "getPixel", pixel_start, pixel_finish,
        ROUTE_INGEST | ROUTE_BEACON | ROUTE_GIF | ROUTE_GUARDED},
    {HTTP_POST, "/api/event", "postPlausibleEvent", plausible_start, plausible_finish,
        ROUTE_BODY | ROUTE_INGEST | ROUTE_BEACON | ROUTE_GUARDED},
    {HTTP_GET, "/tally.js", "getScript", tally_js_start, NULL, ROUTE_PUBLIC},
    {HTTP_GET, "/uv", "getUv", uv_start, counts_finish, 0},
    {HTTP_GET, "/pv", "getPv", pv_start, counts_finish, 0},
    {HTTP_GET, "/ips", "getIps", ips_start, counts_finish, 0},
    {HTTP_GET, "/visits", "getVisits", visits_start, counts_finish, 0},
    {HTTP_GET, "/pages", "getPages", pages_start, pages_finish, 0},
    {HTTP_GET, "/overlap", "getOverlap", overlap_start, overlap_finish, 0},
    {HTTP_GET, "/sites", "getSites", sites_start, sites_finish, 0},
    {HTTP_PUT, "/pagesets/{name}", "putPageSet", page_set_put_start, page_set_put_finish,
        ROUTE_BODY},
    {HTTP_GET, "/pagesets/{name}", "getPageSet", page_set_get_start, page_set_get_finish, 0},
    {HTTP_DELETE, "/pagesets/{name}", "deletePageSet", page_set_delete_start,
        page_set_delete_finish, 0},
    {HTTP_GET, "/hotkeys", "getHotkeys", hotkeys_start, NULL, 0},
    {HTTP_POST, "/ratelimit", "postRateLimit", ratelimit_start, ratelimit_finish,
        ROUTE_BODY | ROUTE_INGEST},
    {HTTP_DELETE, "/ratelimit", "deleteRateLimit", ratelimit_reset_start, ratelimit_reset_finish,
        0},
    {HTTP_GET, "/ratelimit/check", "checkRateLimit", ratelimit_check_start, ratelimit_check_finish,
        ROUTE_INGEST},
    {HTTP_GET, "/dau", "getDau", dau_start, dau_finish, 0},
    {HTTP_GET, "/active", "getActive", active_start, active_finish, 0},
    {HTTP_GET, "/active/users", "getActiveUsers", active_users_start, active_users_finish, 0},
    {HTTP_GET, "/retention", "getRetention", retention_start, retention_finish, 0},
    {HTTP_GET, "/users/{user}/activity", "getUserActivity", user_activity_start,
        user_activity_finish, 0},
    {HTTP_DELETE, "/users/{user}", "deleteUser", delete_user_start, delete_user_finish, 0},
    {HTTP_GET, "/rollup", "getRollup", rollup_get_start, rollup_finish, 0},
    {HTTP_POST, "/rollup", "postRollup", rollup_post_start, rollup_finish, ROUTE_ADMIN},
    {HTTP_GET, "/grafana", "getGrafana", grafana_test_start, NULL, ROUTE_SLASH},
    {HTTP_POST, "/grafana/query", "postGrafanaQuery", grafana_query_start, grafana_query_finish,
        ROUTE_BODY | ROUTE_READ | ROUTE_SLASH},
    {HTTP_POST, "/grafana/metrics", "postGrafanaMetrics", grafana_metrics_start, NULL,
        ROUTE_BODY | ROUTE_READ | ROUTE_SLASH},
    {HTTP_POST, "/grafana/annotations", "postGrafanaAnnotations", grafana_annotations_start, NULL,
        ROUTE_BODY | ROUTE_READ | ROUTE_SLASH},
    {HTTP_POST, "/grafana/tag-keys", "postGrafanaTagKeys", grafana_tag_keys_start, NULL,
        ROUTE_BODY | ROUTE_READ | ROUTE_SLASH},
    {HTTP_POST, "/grafana/variable", "postGrafanaVariable", grafana_variable_start,
        grafana_list_finish, ROUTE_BODY | ROUTE_READ | ROUTE_SLASH},
    {HTTP_POST, "/grafana/search", "postGrafanaSearch", grafana_search_start, grafana_list_finish,
        ROUTE_BODY | ROUTE_READ | ROUTE_SLASH},
    {HTTP_POST, "/grafana/metric-payload-options", "postGrafanaOptions", grafana_options_start,
        grafana_list_finish, ROUTE_BODY | ROUTE_READ | ROUTE_SLASH},
    {HTTP_POST, "/grafana/tag-values", "postGrafanaTagValues", grafana_tag_values_start,
        grafana_list_finish, ROUTE_BODY | ROUTE_READ | ROUTE_SLASH},
    {HTTP_GET, "/", "getDashboard", dashboard_start, NULL, ROUTE_PUBLIC},
    {HTTP_GET, "/web/{file}", "getDashboardFile", dashboard_file_start, NULL, ROUTE_PUBLIC},
    {HTTP_GET, "/seen", "getSeen", seen_start, seen_finish, 0},
    {HTTP_PUT, "/filters/{name}", "putFilter", filter_put_start, filter_finish, ROUTE_BODY},
    {HTTP_GET, "/filters/{name}", "getFilter", filter_get_start, filter_finish, 0},
    {HTTP_DELETE, "/filters/{name}", "deleteFilter", filter_delete_start, filter_finish, 0},
    {HTTP_POST, "/filters/{name}/add", "addToFilter", filter_add_start, filter_finish,
        ROUTE_BODY | ROUTE_INGEST},
    {HTTP_POST, "/filters/{name}/check", "checkFilter", filter_check_start, filter_finish,
        ROUTE_BODY | ROUTE_READ},
    {HTTP_GET, "/stats", "getStats", stats_start, counts_finish, 0},
};

const size_t n_api_routes = sizeof(api_routes) / sizeof(api_routes[0]);
