#include "handlers/access/access.h"

#include "handlers/access/declared_site.h"
#include "handlers/http/app.h"
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

/* The origin, or the URL, of the page that made the browser send the request; empty: the browser
 * does not say. */
static struct slice page_origin(const struct http_request *request)
{
    struct slice origin = request->fields[FIELD_ORIGIN];
    return origin.n > 0 ? origin : request->fields[FIELD_REFERER];
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

bool access_tokenless(const struct route *route, const struct http_exchange *exchange)
{
    if (exchange->request.fields[FIELD_AUTHORIZATION].p != NULL) {
        return false;
    }
    return (route->flags & ROUTE_BASIC) != 0 ||
           ((route->flags & ROUTE_BEACON) != 0 && exchange->app->sites.any_origins &&
               page_origin(&exchange->request).n > 0);
}

static bool site_by_origin(struct http_exchange *exchange, struct slice name)
{
    struct slice origin = page_origin(&exchange->request);
    const struct declared_site *site = declared_site_find(&exchange->app->sites, name);
    if (site == NULL || site->n_origins == 0) {
        problem_reply(&exchange->response, PROBLEM_UNAUTHORIZED, ACCESS_NEEDED);
        (void)problem_add_header(&exchange->response, "WWW-Authenticate", ACCESS_CHALLENGE);
        return false;
    }
    if (declared_site_has_origin(site, origin)) {
        return true;
    }
    problem_reply_parameter(&exchange->response, PROBLEM_FORBIDDEN, "site",
        "pages of %.*s may not send for site %.*s", (int)origin.n, origin.p, (int)name.n, name.p);
    return false;
}

bool access_site(struct http_exchange *exchange, struct slice site)
{
    if (exchange->tokenless) {
        return site_by_origin(exchange, site);
    }
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
    return query_text(exchange, params, "site", event_check_site, ret) &&
           access_site(exchange, *ret);
}
