/* notify.h - tell systemd, or another service manager, that the program is ready or about to stop.
 *
 * Layer: service.  Knows nothing else of tallyd; does not log.
 * Source: sd_notify(3), "Type=notify".  A service manager may name a unix datagram socket in the
 * environment variable NOTIFY_SOCKET: an absolute path, or an abstract address with @ for its
 * leading NUL.  Each datagram sent to that socket is a list of lines NAME=value.  There is no
 * answer.  These few lines save libsystemd and what that library would bring along.
 *
 * Thread safety: any thread.
 */
#ifndef SERVICE_NOTIFY_H
#define SERVICE_NOTIFY_H

#include <stdbool.h>

#define NOTIFY_SOCKET "NOTIFY_SOCKET" /* the environment variable */

#define NOTIFY_READY    "READY=1"    /* the program is in service */
#define NOTIFY_STOPPING "STOPPING=1" /* the program is about to end */

/* Send @state to @address, the value of NOTIFY_SOCKET.  With NULL or "" there is no manager, and
 * nothing is done.  The function never blocks: a manager that does not read is not waited for.
 * False: @state was not sent, and errno says why; EAFNOSUPPORT is an address of neither form. */
bool notify_send(const char *address, const char *state);

#endif
