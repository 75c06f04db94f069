/* geo.h - in which country an address is, by a file in MaxMind's format.
 *
 * Layer: handlers.  Thread-safe: an open file is only read.
 *
 * The operator provides the file: GeoLite2-Country, DB-IP's or another one with `country.iso_code`.
 * The file is copied into memory when it is opened, and later changes to it have no effect.  A
 * look-up does no I/O.
 */
#ifndef HANDLERS_DIMENSION_GEO_H
#define HANDLERS_DIMENSION_GEO_H

#include "handlers/http/app.h"
#include "storage/base/compiler.h"
#include "storage/job/event.h"

/* Open the file at @path.  The caller closes the result with geo_close().  NULL: *ret_error says
 * why, and holds until this thread calls strerror() again. */
struct geo *geo_open(const char *path, const char **ret_error) MUST_CHECK;
void geo_close(struct geo *geo); /* NULL is harmless */

/* The code of the country where @address is: two capital letters, which live as long as @geo.
 * Empty: the file does not say. */
struct slice geo_country(const struct geo *geo, const struct event_address *address);

#endif
