/* router.h - which route serves a request.
 *
 * Layer: service, pure.  A router is read-only once made, so any thread may ask.
 * Paths are exact and compared as they came: nothing is decoded.
 */
#ifndef SERVICE_ROUTER_H
#define SERVICE_ROUTER_H

#include <stdbool.h>
#include <stddef.h>

#include "handlers/http.h"

struct router {
    const struct route *routes; /* the caller's, lives as long */
    struct slice *paths;        /* owned: their paths with lengths */
    size_t n;
};

/* @routes is a static table.  False if memory is out.  Release with router_release. */
bool router_init(struct router *router, const struct route *routes, size_t n) MUST_CHECK;
void router_release(struct router *router);

/* A request method.  OTHER is any token that no route is for: 405 where the path exists. */
enum router_method {
    ROUTER_GET = HTTP_GET,
    ROUTER_POST = HTTP_POST,
    ROUTER_PUT = HTTP_PUT,
    ROUTER_DELETE = HTTP_DELETE,
    ROUTER_HEAD,
    ROUTER_OTHER,
};
enum router_method router_method(struct slice name);

/* The index of the route that serves @method on @path; HEAD is served by GET's.  If there is none,
 * the number of routes, and @ret_methods tells why: a set of bits 1 << enum http_method that @path
 * has, 0 if there is no such path. */
size_t router_find(const struct router *router, enum router_method method, struct slice path,
    unsigned *ret_methods);

#define ROUTER_ALLOW_MAX 40
/* The value of Allow for a set of methods: "GET, HEAD, POST". */
void router_allow(unsigned methods, char ret[static ROUTER_ALLOW_MAX]);

#endif
