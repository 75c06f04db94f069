/* window_params.h - the parameters that every question about a window takes.
 *
 * Layer: handlers, pure.  Thread-safe.
 */
#ifndef HANDLERS_QUESTION_WINDOW_PARAMS_H
#define HANDLERS_QUESTION_WINDOW_PARAMS_H

#include "handlers/http/http.h"
#include "handlers/text/params.h"

/* What a question about a window takes, for the table of its parameters. */
#define WINDOW_PARAMS                                                                              \
    {"site", false}, {"page", true}, {"pageset", false}, {"from", false}, {"to", false},           \
        {"tz", false}, {"explain", false},                                                         \
    {                                                                                              \
        "round", false                                                                             \
    }

/* What was asked.  Slices point into params, which the struct owns. */
struct window_params {
    struct params params;
    struct slice site;
    struct slice *pages; /* owned; NULL: the whole site */
    size_t n_pages;
    struct slice pageset;    /* empty: none */
    const struct zone *zone; /* of tz, else the site's */
    struct window window;
    bool to_is_now;
    bool explain, round_outer;
    enum step step;
};

/* Read the exchange's query.  False: the response says what is wrong.  Release in either case. */
bool window_params_read(struct http_exchange *exchange, struct window_params *ret);
/* The same for a question with parameters of its own: @specs has WINDOW_PARAMS and those. */
bool window_params_read_with(struct http_exchange *exchange, const struct param_spec *specs,
    size_t n_specs, struct window_params *ret);
void window_params_release(struct window_params *p);

/* The question to storage. */
struct window_question window_params_question(const struct window_params *p);

#endif
