/* filter_body.h - the bodies that /filters takes, read and checked: parameters, and items.
 *
 * Layer: handlers, pure.  A body belongs to one exchange.
 *
 * Where a function returns false the response says what is wrong and what is allowed:
 *
 *     400    no JSON
 *     415    another Content-Type
 *     422    another fault of the body
 *     413    more values than any body here needs
 *     503    memory is out
 */
#ifndef HANDLERS_FILTER_FILTER_BODY_H
#define HANDLERS_FILTER_FILTER_BODY_H

#include <jansson.h>

#include "handlers/http/http.h"
#include "storage/base/compiler.h"

/* The items of a body.  A zeroed struct is empty.  The struct owns all; the slices point into root
 * or into numbers. */
struct filter_items {
    json_t *root;        /* the body */
    struct slice *items; /* n of them */
    size_t n;
    char (*numbers)[24]; /* texts of the items that are integers */
};

void filter_items_release(struct filter_items *items);

/* Read {"capacity":N,"error_rate":p,"expansion":2|0} into @job.  If a member is left out, the
 * parameter of @job stays as it is. */
bool filter_body_parameters(struct http_exchange *exchange, struct filter_job *job) MUST_CHECK;

/* Read {"items":[..]}: 1 to FILTER_ITEMS_MAX items.  An item is a string that is not empty, or an
 * integer, which stands for its digits (42 is "42").  @ret is zeroed before; release it in either
 * case. */
bool filter_body_items(struct http_exchange *exchange, struct filter_items *ret) MUST_CHECK;

#endif
