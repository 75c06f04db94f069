/* listen.h - parse the address that tallyd listens on: HOST:PORT or [IPV6]:PORT.
 *
 * Layer: service, pure: nothing is resolved.  Thread-safe.
 * HOST is a dotted IPv4 address or a name.  A name whose last label begins with a digit is refused,
 * because resolvers take forms such as 127.1 or 0x7f.1 for addresses.  Port 0 lets the system
 * choose.
 */
#ifndef SERVICE_OPTIONS_LISTEN_H
#define SERVICE_OPTIONS_LISTEN_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/compiler.h"

#define LISTEN_HOST_MAX 253 /* bytes of a DNS name */

enum listen_family { LISTEN_IPV4, LISTEN_IPV6, LISTEN_NAME };

struct listen_address {
    enum listen_family family;
    char host[LISTEN_HOST_MAX + 1]; /* without brackets */
    uint16_t port;
};

/* NULL, and *ret is written; or what is allowed, a static text, and *ret is untouched. */
const char *listen_parse(const char *text, struct listen_address *ret) MUST_CHECK;

/* Can only this machine reach @address: 127.0.0.0/8, ::1 or localhost? */
bool listen_is_loopback(const struct listen_address *address);

#endif
