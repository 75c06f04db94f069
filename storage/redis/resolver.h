/* resolver.h - the address behind a host's name, by a deadline.
 *
 * Layer: storage.
 *
 * getaddrinfo() waits for name servers as long as resolv.conf says, 20 s and more, and takes no
 * deadline.  So it runs on a thread of its own; who asks waits for that until its deadline, and
 * the answer, if it is late, serves whoever asks within a second of it.  There is one lookup at a
 * time: all who ask meanwhile wait for the same.
 *
 * Thread safety: resolver_ask() from any thread; resolver_free() when nobody asks any more.
 */
#ifndef STORAGE_REDIS_RESOLVER_H
#define STORAGE_REDIS_RESOLVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RESOLVER_ADDRESS_MAX 64 /* an IPv6 address with its zone */
#define RESOLVER_FRESH_MS    1000

struct resolver;

/* Put a numeric address for @host into @address, IPv4 rather than IPv6 (as hiredis does).  Blocks.
 * On failure @address is why not, and false. */
typedef bool (*resolver_lookup)(const char *host, char address[RESOLVER_ADDRESS_MAX]);

/* Nothing is looked up yet.  @lookup: NULL is the system's.  NULL: no memory. */
struct resolver *resolver_new(const char *host, resolver_lookup lookup)
    __attribute__((warn_unused_result));

/* A lookup under way ends later, and gives back what it has.  NULL is harmless. */
void resolver_free(struct resolver *resolver);

/* False: @address is why not: no such name, no memory, or the deadline (CLOCK_MONOTONIC) passed. */
bool resolver_ask(struct resolver *resolver, int64_t deadline_ms,
    char address[RESOLVER_ADDRESS_MAX]) __attribute__((warn_unused_result));

#endif
