/* access.h - who asks, and what they may do: scopes of tokens, and the sites a token is bound to.
 *
 * Layer: handlers.  Thread-safe: no state.
 *
 * The service finds out which token was shown, and whether its scopes suffice, before a handler
 * runs (service/tokens/tokens.h).  But only the handler knows which site a request is about.  So
 * every handler that reads or writes a site asks access_site() as soon as it knows the site.
 *
 * Browsers cannot keep a token secret.  So the routes that browsers send page views to take a
 * request without one, if its page belongs to the site: if Origin, else Referer, is one of the
 * site's origins (`site.<name>.origins`).  This keeps the pages of others from counting for the
 * site.  It keeps no program from it, for a program can send any Origin.
 */
#ifndef HANDLERS_ACCESS_ACCESS_H
#define HANDLERS_ACCESS_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "handlers/http/http.h"
#include "handlers/text/params.h"
#include "storage/base/compiler.h"

/* The value of WWW-Authenticate for a request without a token (RFC 6750 section 3). */
#define ACCESS_CHALLENGE "Bearer realm=\"tallyd\""
#define ACCESS_NEEDED    "a token is needed: Authorization: Bearer TOKEN"

enum access_scope { ACCESS_INGEST = 1, ACCESS_READ = 2, ACCESS_ADMIN = 4 };

#define ACCESS_HASH_SIZE 32

/* The token of a request.  It lives as long as the exchange.  Neither the token nor its hash may be
 * logged. */
struct access {
    const char *name;               /* of the token's owner, unique among tokens; for people */
    uint8_t hash[ACCESS_HASH_SIZE]; /* SHA-256 of the token: its identity */
    unsigned scopes;                /* bits of enum access_scope */
    const struct slice *sites;      /* n_sites that the token may touch; n_sites 0: every site */
    size_t n_sites;
};

/* The scope that a route asks for; 0: it needs no token.  @open_too: routes about the process ask
 * for a token as well (--metrics-token). */
unsigned access_needed(const struct route *route, bool open_too) MUST_CHECK;

/* "ingest", "read", "admin". */
const char *access_scope_name(enum access_scope scope);

/* May the request go on without a token?  Its body may have the token (ROUTE_BASIC).  Or its route
 * is one of the browsers', some site has origins, and the request says which page it comes from;
 * then access_site() judges. */
bool access_tokenless(const struct route *route, const struct http_exchange *exchange) MUST_CHECK;

/* May the exchange's token touch @site?  Where no tokens are in use everybody may; a token that is
 * bound to no site may touch all. */
bool access_has_site(const struct http_exchange *exchange, struct slice site) MUST_CHECK;

/* The same, also for a request without a token.  False: the response is a 403 that names the site,
 * or a 401 where no token was shown and the site has no origins. */
bool access_site(struct http_exchange *exchange, struct slice site) MUST_CHECK;

/* Read the parameter `site`, or take the default site.  False: the name is bad (400), or the token
 * may not touch the site (403), and the response says so. */
bool access_read_site(
    struct http_exchange *exchange, const struct params *params, struct slice *ret) MUST_CHECK;

#endif
