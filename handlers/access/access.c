#include "handlers/access/access.h"

#include "handlers/reply/problem.h"
#include "handlers/reply/query.h"
#include "handlers/text/check.h"

unsigned access_needed(const struct route *route, bool open_too)
{
    if ((route->flags & ROUTE_PUBLIC) != 0) {
        return 0;
    }
    if ((route->flags & ROUTE_OPEN) != 0) {
        return open_too ? ACCESS_READ : 0;
    }
    if ((route->flags & ROUTE_INGEST) != 0) {
        return ACCESS_INGEST;
    }
    if ((route->flags & ROUTE_READ) != 0) {
        return ACCESS_READ;
    }
    return route->method == HTTP_GET && (route->flags & ROUTE_ADMIN) == 0 ? ACCESS_READ
                                                                          : ACCESS_ADMIN;
}

const char *access_scope_name(enum access_scope scope)
{
    switch (scope) {
    case ACCESS_INGEST:
        return "ingest";
    case ACCESS_READ:
        return "read";
    case ACCESS_ADMIN:
        return "admin";
    }
    return "";
}

bool access_has_site(const struct http_exchange *exchange, struct slice site)
{
    const struct access *access = exchange->access;
    if (access == NULL || access->n_sites == 0) {
        return true;
    }
    for (size_t i = 0; i < access->n_sites; i++) {
        if (slice_equal(access->sites[i], site)) {
            return true;
        }
    }
    return false;
}

bool access_site(struct http_exchange *exchange, struct slice site)
{
    if (access_has_site(exchange, site)) {
        return true;
    }
    problem_reply_parameter(&exchange->response, PROBLEM_FORBIDDEN, "site",
        "the token is not for site %.*s", (int)site.n, site.p);
    return false;
}

bool access_read_site(
    struct http_exchange *exchange, const struct params *params, struct slice *ret)
{
    *ret = EVENT_SITE_DEFAULT;
    const char *fault = params_get(params, "site", ret) ? event_check_site(*ret) : NULL;
    return fault == NULL ? access_site(exchange, *ret) : query_refuse(exchange, "site", fault);
}
