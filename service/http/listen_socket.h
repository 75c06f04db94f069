/* listen_socket.h - open a TCP socket that listens.
 *
 * Layer: service.  Thread-safe.
 */
#ifndef SERVICE_HTTP_LISTEN_SOCKET_H
#define SERVICE_HTTP_LISTEN_SOCKET_H

#include <stdint.h>

#include "storage/base/compiler.h"

/* Listen on @host, which is an address or a name, IPv6 without brackets, and on @port.  Port 0 lets
 * the system choose.  Returns the socket, which the caller closes, and *ret_port.  The socket does
 * not block, and children do not inherit it.  -1: *ret_error is a static text, and errno tells more
 * where the system refused. */
int listen_socket_open(
    const char *host, uint16_t port, uint16_t *ret_port, const char **ret_error) MUST_CHECK;

#endif
