/* reread.h - at SIGHUP, read the configuration file and the token file again.
 *
 * Layer: service.  Requests are served meanwhile.  A file with a fault changes nothing at all, and
 * a log record says so.  Another record names the options that differ now and take effect at the
 * next start.  live.h has the part that requests see.
 *
 * Ownership: the service owns everything; service->live is replaced.
 * Thread safety: the main thread alone.
 */
#ifndef SERVICE_REREAD_H
#define SERVICE_REREAD_H

#include "service/parts.h"

/* Read both files again, if the service was started with them. */
void reread(struct service *service);

#endif
