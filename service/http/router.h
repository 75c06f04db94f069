/* router.h - find the route that serves a method and a path.
 *
 * Layer: service, pure.  A router is read-only once made, so any thread may ask.
 *
 * Paths are compared as they came: nothing is decoded.  A route's path is exact, or has one segment
 * in braces ("/filters/{name}/add").  Such a segment stands for one or more bytes without a slash.
 * A route with ROUTE_SLASH is found with a slash behind its path too.
 */
#ifndef SERVICE_HTTP_ROUTER_H
#define SERVICE_HTTP_ROUTER_H

#include <stdbool.h>
#include <stddef.h>

#include "handlers/http/http.h"

/* A route's path around its braces. */
struct router_path {
    struct slice before, after; /* an exact path is all `before` */
    bool variable;
};

struct router {
    const struct route *routes; /* the caller's, and outlives the router */
    struct router_path *paths;  /* owned */
    size_t n;
};

/* Make a router for the static table @routes.  False: out of memory.  router_release() frees it. */
bool router_init(struct router *router, const struct route *routes, size_t n) MUST_CHECK;
void router_release(struct router *router);

/* A request method.  ROUTER_OTHER is a token that no route is for: 405 where the path exists. */
enum router_method {
    ROUTER_GET = HTTP_GET,
    ROUTER_POST = HTTP_POST,
    ROUTER_PUT = HTTP_PUT,
    ROUTER_DELETE = HTTP_DELETE,
    ROUTER_HEAD,
    ROUTER_OTHER,
};
enum router_method router_method(struct slice name);

/* The name of @method, such as "GET"; static. */
const char *router_method_name(enum http_method method);

/* The index of the route that serves @method on @path; GET's route serves HEAD too.  *ret_segment
 * is the part of @path that stands for the braces, raw, and empty for an exact path.
 * Without such a route the result is the number of routes, and *ret_methods tells why: the bits
 * 1 << enum http_method that @path has, 0 if there is no such path. */
size_t router_find(const struct router *router, enum router_method method, struct slice path,
    struct slice *ret_segment, unsigned *ret_methods);

#define ROUTER_ALLOW_MAX 40
/* Write the value of Allow for a set of methods: "GET, HEAD, POST". */
void router_allow(unsigned methods, char ret[static ROUTER_ALLOW_MAX]);

#endif
