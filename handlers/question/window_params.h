/* window_params.h - the parameters that every question about a window takes, read and checked.
 *
 * Layer: handlers, pure.  Thread-safe.
 *
 * A window is a span of time, [from, to).  A question is about a site, or about some of its pages.
 */
#ifndef HANDLERS_QUESTION_WINDOW_PARAMS_H
#define HANDLERS_QUESTION_WINDOW_PARAMS_H

#include "handlers/http/http.h"
#include "handlers/text/params.h"
#include "storage/base/compiler.h"

/* Entries for the table of parameters (see text/params.h) of such a question. */
#define WINDOW_PARAMS                                                                              \
    {"site", false}, {"page", true}, {"pageset", false}, {"from", false}, {"to", false},           \
        {"tz", false}, {"explain", false},                                                         \
    {                                                                                              \
        "round", false                                                                             \
    }

/* More entries, for questions that can be asked about sections, or about named events, in place of
 * pages. */
#define WINDOW_SECTION_PARAM                                                                       \
    {                                                                                              \
        "section", true                                                                            \
    }
#define WINDOW_EVENT_PARAM                                                                         \
    {                                                                                              \
        "event", true                                                                              \
    }

/* More entries, for questions that can be asked about values of dimensions. */
#define WINDOW_VALUE_PARAMS                                                                        \
    {"source", true}, {"utm_source", true}, {"utm_medium", true}, {"utm_campaign", true},          \
        {"utm_term", true}, {"utm_content", true}, {"browser", true}, {"os", true},                \
        {"device", true}, {"country", true},                                                       \
    {                                                                                              \
        "language", true                                                                           \
    }

/* What was asked.  Slices point into params. */
struct window_params {
    struct params params; /* owned */
    struct slice site;
    struct slice *pages; /* owned; n_pages of them; NULL: the whole site, or the page set alone */
    size_t n_pages;
    struct slice *names; /* owned, with the bytes: named events, sections and values, with their
                            marks (see storage/job/counted_name.h), in the order of the query */
    size_t n_names;
    const char *name_param;    /* the parameter that the first of the names came with */
    bool mixed_names;          /* other names came with another parameter */
    struct slice pageset;      /* empty: none */
    const struct zone *zone;   /* the time zone of tz, else the site's */
    struct window window;      /* rounded to whole minutes */
    bool to_is_now;            /* the window ends with the current minute, and follows the clock */
    bool explain, round_outer; /* explain=1, round=outer */
    enum step step;            /* STEP_NONE: no series */
};

/* Read the exchange's query, which may have the parameters of @specs: WINDOW_PARAMS and the
 * question's own.  False: the response says what is wrong.  Release @ret in either case. */
bool window_params_read_with(struct http_exchange *exchange, const struct param_spec *specs,
    size_t n_specs, struct window_params *ret) MUST_CHECK;

/* Read the query of a question about all sites: it may have `from`, `to`, `tz` and `round`, and
 * times without a zone are UTC.  *ret_given: the query has at least one of the four.  False: the
 * response says what is wrong.  Release @ret in either case. */
bool window_params_read_all_sites(
    struct http_exchange *exchange, struct window_params *ret, bool *ret_given) MUST_CHECK;

/* Read a second window of the question, from2 and to2, in the question's zone: both or none.  *ret
 * is the question about the second window.  *ret_given: from2 and to2 were given.  False: the
 * response says what is wrong. */
bool window_params_read_second(struct http_exchange *exchange, struct window_params *p,
    struct window_question *ret, bool *ret_given) MUST_CHECK;

/* Is @param one of those that `names` is made of? */
bool window_params_is_name(const struct param *param);

void window_params_release(struct window_params *p);

/* The question in @p as storage takes it.  Its slices live as long as @p. */
struct window_question window_params_question(const struct window_params *p);

#endif
