/* live.h - what of the options can change while requests are served, at SIGHUP.
 *
 * Layer: service.  Such options are marked in option_table.c (`live`), and the policies of the file
 * are too.  What requests see of them is a struct app: a new one takes the place of the old one as
 * a whole, and a request keeps the one it began with.  Old ones stay until the end, for who knows
 * which request still looks at one; they are as many as there were changes.
 *
 * Thread safety: from one thread.  The app is read-only once made.
 */
#ifndef SERVICE_LIVE_H
#define SERVICE_LIVE_H

#include "handlers/http/app.h"
#include "service/options/options.h"

struct live;

/* What @options say, in a copy of @base.  *@base's guard is on or off for good; where it is on, its
 * limit is the options'.  @options must outlive it; @older, or NULL, is freed with it.  NULL: no
 * memory, and @older is as it was. */
struct live *live_new(
    const struct app *base, const struct options *options, struct live *older) MUST_CHECK;

/* The same from options that are taken over: *@options is zeroed if it succeeds. */
struct live *live_take(
    const struct app *base, struct options *options, struct live *older) MUST_CHECK;

void live_free(struct live *live); /* NULL is harmless */

/* Both are there until live_free(): a newer live that has this one as its older keeps them. */
const struct app *live_app(const struct live *live);
const struct options *live_options(const struct live *live);

/* The ingestion guard that @options ask for.  False: limit and burst do not go together.  (Each for
 * itself was checked before.) */
bool live_guard(
    const struct options *options, enum guard_by *ret_by, struct limit *ret_limit) MUST_CHECK;

/* Is there a difference between what is live in @before and @after? */
bool live_differ(const struct options *before, const struct options *after);

/* Call @tell with the name of each option that differs and needs a restart. */
void live_tell_rest(const struct options *before, const struct options *after,
    void (*tell)(void *data, const char *name), void *data);

#endif
