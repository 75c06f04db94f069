/* live.h - the options that can change while requests are served.
 *
 * Layer: service.  At SIGHUP the configuration file is read again.  Options that may change then
 * are marked `live` in option_table.c, and named entries such as policies may change too.  A
 * request sees them as a struct app (handlers/http/app.h).  A change makes a new struct app, which
 * takes the place of the old one as a whole.  A request keeps the struct app that it began with.
 *
 * Old ones stay until the service ends, because a request may still look at one.  There are as many
 * as there were changes.
 *
 * Thread safety: all functions from one thread.  A struct app is read-only once made.
 */
#ifndef SERVICE_LIVE_H
#define SERVICE_LIVE_H

#include "handlers/http/app.h"
#include "service/options/options.h"
#include "storage/base/compiler.h"

struct live;

/* Make a copy of @base with what @options say.  @base says whether there is an ingestion guard, and
 * @options say its limit.  @options must outlive the result.  @older, which may be NULL, is freed
 * with the result.  NULL: out of memory, and @older is as it was. */
struct live *live_new(
    const struct app *base, const struct options *options, struct live *older) MUST_CHECK;

/* The same, but the result takes the options over: *@options is zeroed on success. */
struct live *live_take(
    const struct app *base, struct options *options, struct live *older) MUST_CHECK;

void live_free(struct live *live); /* frees the older ones, too; NULL is fine */

/* Both stay until live_free(), also when a newer live has this one as its older. */
const struct app *live_app(const struct live *live);
const struct options *live_options(const struct live *live);

/* The ingestion guard that @options ask for.  False: limit and burst do not go together, though
 * each of them passed its own check. */
bool live_guard(
    const struct options *options, enum guard_by *ret_by, struct limit *ret_limit) MUST_CHECK;

/* Do the live options and policies of @before and @after differ? */
bool live_differ(const struct options *before, const struct options *after);

/* Call @tell with the name of each option that differs and needs a restart. */
void live_tell_rest(const struct options *before, const struct options *after,
    void (*tell)(void *data, const char *name), void *data);

#endif
