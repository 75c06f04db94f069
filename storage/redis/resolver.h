/* resolver.h - the address of a host's name, looked up within a deadline.
 *
 * Layer: storage.  Thread-safe: resolver_ask() may be called from any thread.
 *
 * getaddrinfo() waits for name servers as long as resolv.conf says, 20 s and more, and takes no
 * deadline.  So a look-up runs on a thread of its own.  A caller waits for the look-up until the
 * caller's deadline.  A late answer is not lost: it serves every caller that asks within a second.
 * There is one look-up at a time, and all callers wait for the same one.
 */
#ifndef STORAGE_REDIS_RESOLVER_H
#define STORAGE_REDIS_RESOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/compiler.h"

#define RESOLVER_ADDRESS_MAX 64   /* bytes: an IPv6 address with its zone, and a NUL */
#define RESOLVER_FRESH_MS    1000 /* milliseconds for which an answer serves */

struct resolver;

/* Look up @host and write its numeric address into @address, an IPv4 one rather than an IPv6 one,
 * as hiredis does.  May block.  False: @address holds the reason as text. */
typedef bool (*resolver_lookup)(const char *host, char address[RESOLVER_ADDRESS_MAX]);

/* Make a resolver of @host, which is copied.  Nothing is looked up yet.  @lookup NULL:
 * getaddrinfo() looks up.  Returns NULL if memory is short. */
struct resolver *resolver_new(const char *host, resolver_lookup lookup) MUST_CHECK;

/* Free the resolver, when no thread calls resolver_ask() any more.  Does not wait: a look-up under
 * way frees what the look-up uses when it ends.  NULL is harmless. */
void resolver_free(struct resolver *resolver);

/* Write the address of the host into @address.  Waits until @deadline_ms (CLOCK_MONOTONIC) at most.
 * False: @address holds the reason as text: there is no such name, no thread, or no answer by the
 * deadline. */
bool resolver_ask(
    struct resolver *resolver, int64_t deadline_ms, char address[RESOLVER_ADDRESS_MAX]) MUST_CHECK;

#endif
