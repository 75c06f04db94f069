#include "handlers/routes.h"

#include "handlers/counts.h"
#include "handlers/events.h"
#include "handlers/hotkeys.h"
#include "handlers/ratelimit.h"

const struct route api_routes[] = {
    /* method   path       operation    start          finish          flags */
    {HTTP_POST, "/events", "postEvents", events_start, events_finish, ROUTE_BODY | ROUTE_INGEST},
    {HTTP_GET, "/uv", "getUv", uv_start, counts_finish, 0},
    {HTTP_GET, "/pv", "getPv", pv_start, counts_finish, 0},
    {HTTP_GET, "/ips", "getIps", ips_start, counts_finish, 0},
    {HTTP_GET, "/visits", "getVisits", visits_start, counts_finish, 0},
    {HTTP_GET, "/hotkeys", "getHotkeys", hotkeys_start, NULL, 0},
    {HTTP_POST, "/ratelimit", "postRateLimit", ratelimit_start, ratelimit_finish,
        ROUTE_BODY | ROUTE_INGEST},
    {HTTP_DELETE, "/ratelimit", "deleteRateLimit", ratelimit_reset_start, ratelimit_reset_finish,
        0},
    {HTTP_GET, "/ratelimit/check", "checkRateLimit", ratelimit_check_start, ratelimit_check_finish,
        ROUTE_INGEST},
};

const size_t n_api_routes = sizeof(api_routes) / sizeof(api_routes[0]);
