/* reread.h - SIGHUP: the configuration file and the tokens, read again while requests are served.
 *
 * Layer: service.  What is wrong in a file changes nothing at all, and the log says so; what can
 * only change at the next start is named there.  live.h has the part that requests see.
 *
 * Ownership: borrows all of it, but *live, in whose place it puts what it made.  Thread safety: the
 * main thread.
 */
#ifndef SERVICE_REREAD_H
#define SERVICE_REREAD_H

#include "service/parts.h"

void reread(struct service *service);

#endif
