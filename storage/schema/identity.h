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
 * An address that is counted by itself is hashed as: site NUL address.
 *
 * Names that were given (id, user) are hashed with the data's secret.  So are addresses, unless
 * visitors rotate (job/config.h): then addresses are hashed with the secret of the period that
 * holds the event.  Each period has a random secret of its own, which is thrown away 48 h after the
 * period (core/period_secrets.h).  From then on no visitor of that period can be recognised, not
 * even by somebody who has a copy of all data.  `period` is the beginning of the period, 0 where
 * visitors do not rotate.
 *
 * A visitor has 128 bits, because visits are counted exactly: two of 10 million visitors have the
 * same hash with a probability of 1e-25.  Sketches take the first 64 bits.
 * Source: SipHash-2-4 with 128 and 64 bits of output (Aumasson, Bernstein 2012), libsodium's.
 */
#ifndef STORAGE_SCHEMA_IDENTITY_H
#define STORAGE_SCHEMA_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "storage/base/compiler.h"
#include "storage/job/event.h"
#include "storage/job/config.h"

#define SECRET_SIZE 32

struct secret {
    uint8_t bytes[SECRET_SIZE]; /* first half: key for visitors, second half: for addresses */
};

/* The id of the data set that has @secret: the first 64 bits of BLAKE2b-128.  The id tells data of
 * one installation from that of another one, and tells nothing of the secret.
 * Source: BLAKE2b (RFC 7693), libsodium's crypto_generichash. */
uint64_t identity_data_set(const struct secret *secret);

/* The secret of a rotation period. */
struct period_secret {
    int64_t start_s;
    struct secret secret;
};

/* The secrets that events are hashed with.  The caller owns them. */
struct identity_keys {
    const struct secret *secret;
    enum rotation rotation;
    const struct period_secret *periods; /* of the events' periods, by start_s; else NULL */
    size_t n_periods;
    bool no_addresses; /* addresses are not counted */
};

struct visitor_id {
    uint8_t bytes[16];
};

/* A hash of @id for tables in memory.  The id is uniform, and its second half chooses the
 * partition. */
static inline uint64_t visitor_id_hash(const struct visitor_id *id)
{
    uint64_t hash;
    memcpy(&hash, id->bytes, sizeof(hash));
    return hash;
}

struct address_id {
    uint8_t bytes[8];
};

/* The visitor of a validated event.  False, with @ret untouched: the event has no anonymous id, no
 * user and no address.  An address whose period has no secret in @keys counts as no address. */
bool identity_visitor(
    const struct identity_keys *keys, const struct event *event, struct visitor_id *ret) MUST_CHECK;

/* The user of a site: the same as the visitor of an event that has only this user. */
void identity_user(
    const struct secret *secret, struct slice site, struct slice user, struct visitor_id *ret);

/* A keyed hash of a name (job/counted_name.h), of at most EVENT_PAGE_MAX bytes: without the secret
 * nobody can make two names that have the same hash.  The text that is hashed is: NUL name. */
uint64_t identity_name(const struct secret *secret, struct slice name);

/* The address of a validated event.  False, with @ret untouched: the event has no address, or its
 * period has no secret in @keys. */
bool identity_address(
    const struct identity_keys *keys, const struct event *event, struct address_id *ret) MUST_CHECK;

#endif
