#include "handlers/access/client.h"

#include "handlers/http/app.h"
#include "handlers/text/check.h"

/* The address of @entry, without port and brackets. */
static struct slice host_of(struct slice entry)
{
    const char *colon = entry.n > 0 ? memchr(entry.p, ':', entry.n) : NULL;
    if (entry.n > 0 && entry.p[0] == '[') {
        const char *close = memchr(entry.p, ']', entry.n);
        return close != NULL ? (struct slice){entry.p + 1, (size_t)(close - entry.p) - 1} : entry;
    }
    if (colon != NULL && memchr(colon + 1, ':', entry.n - (size_t)(colon + 1 - entry.p)) == NULL) {
        entry.n = (size_t)(colon - entry.p);
    }
    return entry;
}

/* Cut the last entry off @list. */
static struct slice take_last(struct slice *list)
{
    size_t at = list->n;
    while (at > 0 && list->p[at - 1] != ',') {
        at--;
    }
    struct slice entry = {list->p + at, list->n - at};
    list->n = at > 0 ? at - 1 : 0;
    return slice_trim(entry, " \t");
}

struct event_address client_address(const struct http_exchange *exchange)
{
    const struct http_request *request = &exchange->request;
    const struct app *app = exchange->app;
    struct event_address address = {0};
    (void)event_parse_address(request->peer, &address); /* the peer of a unix socket has none */
    for (unsigned i = request->n_forwarded; i > 0; i--) {
        struct slice list = request->forwarded[i - 1];
        while (list.n > 0) {
            if (!networks_hold(app->trusted, app->n_trusted, &address)) {
                return address;
            }
            struct slice entry = take_last(&list);
            if (entry.n > 0 && event_parse_address(host_of(entry), &address) != NULL) {
                return address;
            }
        }
    }
    return address;
}

bool client_is_proxied(const struct http_exchange *exchange)
{
    struct event_address address = {0};
    (void)event_parse_address(exchange->request.peer, &address);
    return networks_hold(exchange->app->trusted, exchange->app->n_trusted, &address);
}

struct slice client_mirrored_target(const struct http_exchange *exchange)
{
    const struct http_request *request = &exchange->request;
    if (!client_is_proxied(exchange)) {
        return SLICE("");
    }
    enum http_field_name name =
        request->fields[FIELD_ORIGINAL_URI].n > 0 ? FIELD_ORIGINAL_URI : FIELD_FORWARDED_URI;
    struct slice uri = request->fields[name];
    return uri.n == 0 || (request->repeated >> name & 1) != 0 ? SLICE("") : uri;
}
