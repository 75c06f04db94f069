/* site_of_host.h - the site whose name is a host's.
 *
 * Layer: service/client, pure.  Thread-safe.
 */
#ifndef SERVICE_CLIENT_SITE_OF_HOST_H
#define SERVICE_CLIENT_SITE_OF_HOST_H

#include <stdbool.h>

#include "storage/base/compiler.h"
#include "storage/base/slice.h"
#include "storage/job/event.h"

/* Write the name of @host's site to @to, EVENT_SITE_MAX bytes: lower case, without a port, and
 * without the dot at the end that a full name may have.  *ret is that name.  False: no site may
 * have it, as [2001:db8::1]. */
bool site_of_host(struct slice host, char *to, struct slice *ret) MUST_CHECK;

#endif
