/* listen_socket.h - a TCP socket that listens.
 *
 * Layer: service.  Thread-safe.
 */
#ifndef SERVICE_HTTP_LISTEN_SOCKET_H
#define SERVICE_HTTP_LISTEN_SOCKET_H

#include <stdint.h>

/* Listen on @host, an address or a name (IPv6 without brackets), and @port; 0 lets the system
 * choose. The socket is non-blocking and not inherited by children.  Returns it, the caller's to
 * close, and
 * @ret_port; or -1 and @ret_error (static text; errno tells more where the system refused). */
int listen_socket_open(const char *host, uint16_t port, uint16_t *ret_port, const char **ret_error)
    __attribute__((warn_unused_result));

#endif
