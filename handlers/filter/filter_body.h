/* filter_body.h - the bodies that /filters takes: parameters, and items.
 *
 * Layer: handlers, pure.  A body belongs to one exchange.  False: the response says what is wrong
 * and what is allowed: 400 for what is no JSON, 415 for another type, 422 for the rest.
 */
#ifndef HANDLERS_FILTER_FILTER_BODY_H
#define HANDLERS_FILTER_FILTER_BODY_H

#include <jansson.h>

#include "handlers/http/http.h"

/* Zeroed it is empty.  Slices point into root, or into numbers. */
struct filter_items {
    json_t *root;
    struct slice *items;
    size_t n;
    char (*numbers)[24]; /* texts of the items that are integers */
};

void filter_items_release(struct filter_items *items);

/* {"capacity":N,"error_rate":p,"expansion":2|0}, into @job; what is left out has its default. */
bool filter_body_parameters(struct http_exchange *exchange, struct filter_job *job);

/* {"items":[..]}: 1 to FILTER_ITEMS_MAX strings that are not empty, or integers (42 is "42"). */
bool filter_body_items(struct http_exchange *exchange, struct filter_items *ret);

#endif
