/* derive.h - the dimensions of a page view: what it is counted by beside its page and its site.
 *
 * Layer: handlers, pure.  Thread-safe: no state.
 *
 * A sender says where a visitor came from and with what: a referrer, a user agent, parameters in
 * the page's URL.  The functions here make values of dimensions of that, and find the sections that
 * the page is in.  What was sent is forgotten with the request; only the values are kept.
 */
#ifndef HANDLERS_DIMENSION_DERIVE_H
#define HANDLERS_DIMENSION_DERIVE_H

#include "handlers/dimension/campaign.h"
#include "handlers/http/app.h"
#include "storage/base/arena.h"
#include "storage/base/compiler.h"

/* A property of an event, as it was sent. */
struct view_prop {
    struct slice name, value;
};

/* What a sender says of a page view beside the members of struct event.  A text that is not known
 * is empty.  utm and the values of props are UTF-8 without control characters, of at most
 * DIMENSION_VALUE_MAX bytes each; the other texts may have any bytes. */
struct view_traits {
    struct slice referrer;   /* a URL, if it says anything */
    struct slice url;        /* the page's, with its query, where event->page is only the path */
    struct slice own;        /* any URL of the site's own host */
    struct slice utm[UTM_N]; /* these have precedence over the parameters in the page's query */
    struct slice country;    /* a code of two letters, in any case; all else is ignored */
    struct slice language;   /* see language.h */
    const struct view_prop *props; /* n_props of them, each name once */
    size_t n_props;
};

/* Complete @event, which is valid: if a rule fits, the page becomes the rule's page, and the values
 * of dimensions are set.  Their texts lie in @arena, are static, or are those of @event, @traits or
 * @app.  An event that is no page view is left as it is.  False: out of memory. */
bool derive_view(const struct app *app, const struct view_traits *traits, struct event *event,
    struct arena *arena) MUST_CHECK;

/* The plan of @site, which lives as long as @app. */
const struct dimension_plan *derive_plan(const struct app *app, struct slice site);

#endif
