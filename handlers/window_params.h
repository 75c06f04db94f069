/* window_params.h - the parameters that every question about a window takes.
 *
 * Layer: handlers, pure.  Thread-safe.
 */
#ifndef HANDLERS_WINDOW_PARAMS_H
#define HANDLERS_WINDOW_PARAMS_H

#include "handlers/http.h"
#include "handlers/params.h"

/* What was asked.  Slices point into params, which the struct owns. */
struct window_params {
    struct params params;
    struct slice site;
    struct slice *pages; /* owned; NULL: the whole site */
    size_t n_pages;
    const struct zone *zone; /* of tz, else the site's */
    struct window window;
    bool to_is_now;
    bool explain, round_outer;
    enum step step;
};

/* Read the exchange's query.  False: the response says what is wrong.  Release in either case. */
bool window_params_read(struct http_exchange *exchange, struct window_params *ret);
void window_params_release(struct window_params *p);

#endif
