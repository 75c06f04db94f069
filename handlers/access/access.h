/* access.h - who asks, and what they may: scopes of tokens, sites they are bound to.
 *
 * Layer: handlers.  Thread-safe: no state.  Which token was shown, and whether its scopes suffice,
 * is found out before a handler runs (service/tokens/tokens.h); the site of a request only a
 * handler knows. So every handler that reads or writes a site asks access_site() once it knows
 * which.
 */
#ifndef HANDLERS_ACCESS_ACCESS_H
#define HANDLERS_ACCESS_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "handlers/http/http.h"
#include "handlers/text/params.h"

enum access_scope { ACCESS_INGEST = 1, ACCESS_READ = 2, ACCESS_ADMIN = 4 };

#define ACCESS_HASH_SIZE 32

/* The token of a request.  Lives as long as the exchange.  Neither the token nor its hash is ever
 * logged. */
struct access {
    const char *name;               /* of the token's owner, unique among tokens; for people */
    uint8_t hash[ACCESS_HASH_SIZE]; /* SHA-256 of the token: its identity */
    unsigned scopes;                /* bits of enum access_scope */
    const struct slice *sites;      /* n_sites of them; n_sites 0: every site */
    size_t n_sites;
};

/* The scope that a route asks for, 0 if it needs no token. @open_too: routes about the process ask
 * for one as well (--metrics-token). */
unsigned access_needed(const struct route *route, bool open_too);

/* "ingest", "read", "admin". */
const char *access_scope_name(enum access_scope scope);

/* May the exchange's token touch @site?  Without tokens, and for one that is bound to none: yes. */
bool access_has_site(const struct http_exchange *exchange, struct slice site);

/* The same; false: the response is a 403 that names the site. */
bool access_site(struct http_exchange *exchange, struct slice site);

/* The parameter `site`, or the default one, if its name is good and the token may touch it.  False:
 * the response says why. */
bool access_read_site(
    struct http_exchange *exchange, const struct params *params, struct slice *ret);

#endif
