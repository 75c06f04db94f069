/* derive.h - what a page view is counted for beside its page and its site.
 *
 * Layer: handlers, pure.  Thread-safe: no state.
 *
 * A sender says where a visitor came from and with what: a referrer, a user agent, parameters in
 * the page's URL.  This makes values of dimensions of it, and names the sections that the page is
 * in.  What was sent is forgotten with the request; only the values are kept.
 */
#ifndef HANDLERS_DIMENSION_DERIVE_H
#define HANDLERS_DIMENSION_DERIVE_H

#include "handlers/dimension/campaign.h"
#include "handlers/http/app.h"
#include "storage/base/arena.h"
#include "storage/base/compiler.h"

/* A property as it was sent. */
struct view_prop {
    struct slice name, value;
};

/* What a sender says of a page view beside the members of struct event.  Texts are UTF-8 without
 * control characters, of at most DIMENSION_VALUE_MAX bytes, but for the referrer; what is not known
 * is empty. */
struct view_traits {
    struct slice referrer;   /* any bytes */
    struct slice url;        /* of the page, with its query, where event->page is only its path */
    struct slice own;        /* any URL of the site's own host */
    struct slice utm[UTM_N]; /* these come before those of the URL's query */
    struct slice country;    /* a code of two letters, in any case; others are as none */
    struct slice language;   /* see language.h */
    const struct view_prop *props; /* n_props of them, each name once */
    size_t n_props;
};

/* Complete @event, which is a valid page view: its page becomes that of a rule, and its values are
 * set.  Texts are @event's, @traits', @app's, static, or in @arena.  An event that is no page view
 * is left as it is.  False: out of memory. */
bool derive_view(const struct app *app, const struct view_traits *traits, struct event *event,
    struct arena *arena) MUST_CHECK;

/* The plan of the site @name. */
const struct dimension_plan *derive_plan(const struct app *app, struct slice site);

#endif
