/* network.h - a network of IP addresses, as 10.0.0.0/8.
 *
 * Layer: handlers, pure.  Thread-safe.
 */
#ifndef HANDLERS_TEXT_NETWORK_H
#define HANDLERS_TEXT_NETWORK_H

#include <stdbool.h>

#include "storage/base/compiler.h"
#include "storage/job/event.h"

struct network {
    struct event_address address; /* never of length 0 */
    unsigned bits;                /* length of the prefix, in bits */
};

/* Read "ADDRESS" or "ADDRESS/BITS".  Bits of the address behind the prefix are not looked at.  A
 * network of IPv4-mapped IPv6 addresses becomes the IPv4 one.  Returns NULL, or what is wrong
 * (static); then @ret is untouched. */
const char *network_parse(struct slice text, struct network *ret) MUST_CHECK;

/* Is @address in the network?  An address of length 0 is in none. */
bool network_holds(const struct network *network, const struct event_address *address) MUST_CHECK;

/* Is @address in one of the @n networks? */
bool networks_hold(
    const struct network *networks, size_t n, const struct event_address *address) MUST_CHECK;

#endif
