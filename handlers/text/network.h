/* network.h - a network of addresses, as 10.0.0.0/8.
 *
 * Layer: handlers, pure.  Thread-safe.
 */
#ifndef HANDLERS_TEXT_NETWORK_H
#define HANDLERS_TEXT_NETWORK_H

#include <stdbool.h>

#include "storage/job/event.h"

struct network {
    struct event_address address; /* never of length 0 */
    unsigned bits;                /* of it that count */
};

/* ADDRESS or ADDRESS/BITS; bits beyond the prefix are not looked at.  A network of IPv4-mapped IPv6
 * addresses is the IPv4 one.  NULL, or what is wrong (static); @ret is untouched then. */
const char *network_parse(struct slice text, struct network *ret);

/* False for an address that is none. */
bool network_holds(const struct network *network, const struct event_address *address);

#endif
