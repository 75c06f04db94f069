/* identity.h - as whom a visitor is counted: keyed hashes instead of names and addresses.
 *
 * Layer: storage, pure.  Thread-safe.
 *
 * Redis must hold no name and no address of a visitor.  So each is hashed with a secret key, the
 * same in all processes.  The site is part of what is hashed, so one person is two visitors on two
 * sites:
 *
 *     the event has       text that is hashed
 *     an anonymous id     'v' site NUL id
 *     else a user         'u' site NUL user
 *     else an address     'a' site NUL address-length address period NUL agent
 *
 * `period` is the beginning of the rotation period that holds the event (job/config.h).  An address
 * that is counted by itself is hashed as: site NUL address.
 *
 * A visitor has 128 bits, because visits are counted exactly: two of 10 million visitors have the
 * same hash with a probability of 1e-25.  Sketches take the first 64 bits.
 * Source: SipHash-2-4 with 128 and 64 bits of output (Aumasson, Bernstein 2012), libsodium's.
 */
#ifndef STORAGE_SCHEMA_IDENTITY_H
#define STORAGE_SCHEMA_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/compiler.h"
#include "storage/job/event.h"
#include "storage/job/config.h"

#define SECRET_SIZE 32

struct secret {
    uint8_t bytes[SECRET_SIZE]; /* first half: key for visitors, second half: for addresses */
};

struct visitor_id {
    uint8_t bytes[16];
};

struct address_id {
    uint8_t bytes[8];
};

/* The visitor of a validated event.  False, with @ret untouched: the event has no anonymous id, no
 * user and no address. */
bool identity_visitor(const struct secret *secret, enum rotation rotation,
    const struct event *event, struct visitor_id *ret) MUST_CHECK;

/* The user of a site: the same as the visitor of an event that has only this user. */
void identity_user(
    const struct secret *secret, struct slice site, struct slice user, struct visitor_id *ret);

/* A keyed hash of a name (job/counted_name.h), of at most EVENT_PAGE_MAX bytes: nobody who does not
 * know the secret can make two names that have the same one.  Hashed as: NUL name. */
uint64_t identity_name(const struct secret *secret, struct slice name);

/* The address of a validated event.  False, with @ret untouched: the event has none. */
bool identity_address(
    const struct secret *secret, const struct event *event, struct address_id *ret) MUST_CHECK;

#endif
