/* source.h - where a visitor came from, by the referrer.
 *
 * Layer: handlers, pure.  Thread-safe: no state.
 *
 * A source is the host of the referrer in lower case, without user, port and a leading "www.".
 * Search engines and social networks that have many hosts have one short name: google.de and
 * google.co.uk are "google".  The list of these is short on purpose: it has the hosts that send
 * most visitors, and every other host is its own name.
 */
#ifndef HANDLERS_DIMENSION_SOURCE_H
#define HANDLERS_DIMENSION_SOURCE_H

#include <stdbool.h>

#include "storage/base/compiler.h"
#include "storage/base/slice.h"

#define SOURCE_HOST_MAX 253 /* bytes of the longest name in DNS */

/* @host without a leading "www.". */
struct slice source_without_www(struct slice host);

/* Read the host of @url, whose scheme is http, https or android-app.  *ret is the host in lower
 * case, without "www.", in @to, which has room for SOURCE_HOST_MAX bytes, or for as many as @url
 * has.  False: it is no such URL, or its host is neither a name nor an address, or no UTF-8. */
bool source_host(struct slice url, char *to, struct slice *ret) MUST_CHECK;

/* The short name of a well-known host (static); any other host is its own name. */
struct slice source_name(struct slice host);

#endif
