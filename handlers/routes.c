#include "handlers/routes.h"

#include "handlers/counts.h"
#include "handlers/events.h"

const struct route api_routes[] = {
    /* method   path       operation    start          finish          flags */
    {HTTP_POST, "/events", "postEvents", events_start, events_finish, ROUTE_BODY},
    {HTTP_GET, "/uv", "getUv", uv_start, counts_finish, 0},
    {HTTP_GET, "/pv", "getPv", pv_start, counts_finish, 0},
    {HTTP_GET, "/ips", "getIps", ips_start, counts_finish, 0},
    {HTTP_GET, "/visits", "getVisits", visits_start, counts_finish, 0},
    {HTTP_GET, "/stats", "getStats", stats_start, counts_finish, 0},
};

const size_t n_api_routes = sizeof(api_routes) / sizeof(api_routes[0]);
