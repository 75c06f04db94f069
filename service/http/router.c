#include "service/http/router.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const method_names[ROUTER_OTHER] = {
    [ROUTER_GET] = "GET",
    [ROUTER_POST] = "POST",
    [ROUTER_PUT] = "PUT",
    [ROUTER_DELETE] = "DELETE",
    [ROUTER_HEAD] = "HEAD",
};

static struct router_path split(const char *text)
{
    struct slice path = slice_of(text);
    const char *open = strchr(text, '{');
    const char *close = open != NULL ? strchr(open, '}') : NULL;
    if (close == NULL) {
        return (struct router_path){.before = path};
    }
    return (struct router_path){
        .before = {text, (size_t)(open - text)}, .after = slice_of(close + 1), .variable = true};
}

bool router_init(struct router *router, const struct route *routes, size_t n)
{
    struct router_path *paths = calloc(n + 1, sizeof(*paths));
    if (paths == NULL) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        paths[i] = split(routes[i].path);
    }
    *router = (struct router){.routes = routes, .paths = paths, .n = n};
    return true;
}

void router_release(struct router *router)
{
    free(router->paths);
    *router = (struct router){0};
}

const char *router_method_name(enum http_method method)
{
    return method_names[method];
}

enum router_method router_method(struct slice name)
{
    enum router_method method = ROUTER_GET;
    while (method < ROUTER_OTHER && !slice_equal(name, slice_of(method_names[method]))) {
        method++;
    }
    return method;
}

static bool matches(const struct router_path *pattern, struct slice path, struct slice *ret_segment)
{
    size_t around = pattern->before.n + pattern->after.n;
    *ret_segment = (struct slice){0};
    if (!pattern->variable) {
        return slice_equal(pattern->before, path);
    }
    if (path.n <= around) {
        return false;
    }
    struct slice segment = {path.p + pattern->before.n, path.n - around};
    *ret_segment = segment;
    return memcmp(path.p, pattern->before.p, pattern->before.n) == 0 &&
           slice_equal(pattern->after, (struct slice){segment.p + segment.n, pattern->after.n}) &&
           memchr(segment.p, '/', segment.n) == NULL;
}

size_t router_find(const struct router *router, enum router_method method, struct slice path,
    struct slice *ret_segment, unsigned *ret_methods)
{
    unsigned methods = 0;
    unsigned wanted = (unsigned)(method == ROUTER_HEAD ? ROUTER_GET : method);
    bool slash = path.n > 1 && path.p[path.n - 1] == '/';
    for (size_t i = 0; i < router->n; i++) {
        bool cut = slash && (router->routes[i].flags & ROUTE_SLASH) != 0;
        struct slice compared = {path.p, path.n - (cut ? 1 : 0)};
        if (!matches(&router->paths[i], compared, ret_segment)) {
            continue;
        }
        if ((unsigned)router->routes[i].method == wanted) {
            return i;
        }
        methods |= 1u << router->routes[i].method;
    }
    *ret_segment = (struct slice){0};
    *ret_methods = methods;
    return router->n;
}

void router_allow(unsigned methods, char ret[static ROUTER_ALLOW_MAX])
{
    size_t n = 0;
    ret[0] = '\0';
    for (enum router_method method = ROUTER_GET; method < ROUTER_HEAD; method++) {
        if ((methods & 1u << method) == 0) {
            continue;
        }
        int added = snprintf(ret + n, ROUTER_ALLOW_MAX - n, "%s%s%s", n == 0 ? "" : ", ",
            method_names[method], method == ROUTER_GET ? ", HEAD" : "");
        n += added > 0 ? (size_t)added : 0;
    }
}
