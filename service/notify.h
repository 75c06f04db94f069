/* notify.h - tell the service manager how far the program is: systemd's readiness protocol.
 *
 * Layer: service.  Knows nothing else of tallyd; does not log.
 * The protocol (sd_notify(3), "Type=notify"): who starts the program may name a unix datagram
 * socket in $NOTIFY_SOCKET, an absolute path, or an abstract address with @ for its leading NUL.
 * Each datagram sent there is a list of lines NAME=value.  There is no answer.  The few lines below
 * save libsystemd and what it would bring with it.
 *
 * Thread safety: any thread.
 */
#ifndef SERVICE_NOTIFY_H
#define SERVICE_NOTIFY_H

#include <stdbool.h>

#define NOTIFY_SOCKET "NOTIFY_SOCKET" /* the environment variable */

#define NOTIFY_READY    "READY=1"    /* in service */
#define NOTIFY_STOPPING "STOPPING=1" /* no longer, and about to end */

/* Send @state to @address, $NOTIFY_SOCKET's value; NULL or "": nobody asked, and nothing is done.
 * Never blocks: a manager that does not read is not waited for.  False with errno: it was not sent
 * (EAFNOSUPPORT: neither path nor abstract address); nothing worse than that follows. */
bool notify_send(const char *address, const char *state);

#endif
