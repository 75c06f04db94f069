/* declared_site.h - the sites that the configuration names, by lines `site.<name>. ..`.
 *
 * Layer: handlers, pure.  Thread-safe.
 */
#ifndef HANDLERS_ACCESS_DECLARED_SITE_H
#define HANDLERS_ACCESS_DECLARED_SITE_H

#include "handlers/http/app.h"
#include "storage/base/compiler.h"

/* The site @name.  NULL: no line names it. */
const struct declared_site *declared_site_find(
    const struct declared_sites *sites, struct slice name) MUST_CHECK;

/* Does @origin, an origin or a whole URL, belong to the site?  Scheme, host and port must be those
 * of one of its origins.  Upper and lower case do not count, and the default port of http and https
 * may be left out. */
bool declared_site_has_origin(const struct declared_site *site, struct slice origin) MUST_CHECK;

/* May events of site @name be counted?  With --only-declared-sites a line must name the site. */
bool declared_site_takes(const struct app *app, struct slice name) MUST_CHECK;

/* What is wrong with an event of a site that is not taken. */
#define DECLARED_SITE_DETAIL "no line site.<name>. of the configuration names this site"

#endif
