/* geo.h - in which country an address is, by a file in MaxMind's format.
 *
 * Layer: handlers.  Thread-safe: an open file is only read.
 *
 * The file is the operator's: GeoLite2-Country, DB-IP's or another one that has `country.iso_code`.
 * It is copied into memory once, when the service starts: what happens to the file then changes
 * nothing.  A look-up asks nobody.
 */
#ifndef HANDLERS_DIMENSION_GEO_H
#define HANDLERS_DIMENSION_GEO_H

#include "handlers/http/app.h"
#include "storage/base/compiler.h"
#include "storage/job/event.h"

/* Open the file at @path.  NULL: *ret_error says why, until the thread's next strerror(). */
struct geo *geo_open(const char *path, const char **ret_error) MUST_CHECK;
void geo_close(struct geo *geo); /* NULL is harmless */

/* The country's code, two capital letters, which live as long as @geo.  Empty: the file does not
 * say. */
struct slice geo_country(const struct geo *geo, const struct event_address *address);

#endif
