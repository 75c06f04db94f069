/* identity.h - who a visitor is: keyed hashes instead of names and addresses.
 *
 * Layer: storage, pure.  Thread-safe.
 * Source: SipHash-2-4, 64 and 128 bits of output (Aumasson, Bernstein 2012), libsodium's.
 * What is hashed, with the site in front so that one person is two visitors on two sites:
 *   a `user`:    'u' site NUL user
 *   else an ip:  'a' site NUL address-length address period NUL agent
 * 128 bits, as visits are exact: 10 million visitors collide with a probability of 1e-25.  Sketches
 * take the first 64 bits of it.  `period` is the rotation period the event lies in (UTC).
 */
#ifndef STORAGE_SCHEMA_IDENTITY_H
#define STORAGE_SCHEMA_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/job/event.h"
#include "storage/job/config.h"

#define SECRET_SIZE 32

struct secret {
    uint8_t bytes[SECRET_SIZE]; /* first half: visitors, second half: addresses */
};

struct visitor_id {
    uint8_t bytes[16];
};

struct address_id {
    uint8_t bytes[8];
};

/* False if the event has neither user nor address. */
bool identity_visitor(const struct secret *secret, enum rotation rotation,
    const struct event *event, struct visitor_id *ret);

/* False if the event has no address. */
bool identity_address(
    const struct secret *secret, const struct event *event, struct address_id *ret);

#endif
