/* source.h - where a visitor came from, by the referrer.
 *
 * Layer: handlers, pure.  Thread-safe: no state.
 *
 * A source is the host of the referrer in lower case, without user, port and a leading "www.".
 * Search engines and networks that have many hosts have one short name: google.de and google.co.uk
 * are "google".  The list is short on purpose.  It has the places that send most visitors; every
 * other host speaks for itself.
 */
#ifndef HANDLERS_DIMENSION_SOURCE_H
#define HANDLERS_DIMENSION_SOURCE_H

#include <stdbool.h>

#include "storage/base/compiler.h"
#include "storage/base/slice.h"

#define SOURCE_HOST_MAX 253 /* bytes: of a name in DNS */

/* @host without a leading "www.". */
struct slice source_without_www(struct slice host);

/* The host of @url, which is http, https or android-app, without "www."; it is written to @to,
 * which has room for SOURCE_HOST_MAX bytes.  False: it is not such a URL, or its host is no name
 * and no address, or no UTF-8. */
bool source_host(struct slice url, char *to, struct slice *ret) MUST_CHECK;

/* The short name of a well-known host (static); any other host is its own name. */
struct slice source_name(struct slice host);

#endif
