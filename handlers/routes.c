#include "handlers/routes.h"

#include "handlers/counts.h"
#include "handlers/events.h"
#include "handlers/filters.h"
#include "handlers/seen.h"

const struct route api_routes[] = {
    /* method   path       operation    start          finish          flags */
    {HTTP_POST, "/events", "postEvents", events_start, events_finish, ROUTE_BODY},
    {HTTP_GET, "/uv", "getUv", uv_start, counts_finish, 0},
    {HTTP_GET, "/pv", "getPv", pv_start, counts_finish, 0},
    {HTTP_GET, "/ips", "getIps", ips_start, counts_finish, 0},
    {HTTP_GET, "/visits", "getVisits", visits_start, counts_finish, 0},
    {HTTP_GET, "/seen", "getSeen", seen_start, seen_finish, 0},
    {HTTP_PUT, "/filters/{name}", "putFilter", filter_put_start, filter_finish, ROUTE_BODY},
    {HTTP_GET, "/filters/{name}", "getFilter", filter_get_start, filter_finish, 0},
    {HTTP_DELETE, "/filters/{name}", "deleteFilter", filter_delete_start, filter_finish, 0},
    {HTTP_POST, "/filters/{name}/add", "addToFilter", filter_add_start, filter_finish, ROUTE_BODY},
    {HTTP_POST, "/filters/{name}/check", "checkFilter", filter_check_start, filter_finish,
        ROUTE_BODY},
};

const size_t n_api_routes = sizeof(api_routes) / sizeof(api_routes[0]);
