/* access.h - what a request may do: the scopes of its token, and the sites the token is bound to.
 *
 * Layer: handlers.  Thread-safe: no state.
 *
 * The service finds out which token was shown, and whether its scopes suffice, before a handler
 * runs (service/tokens/tokens.h).  But only the handler knows which site a request is about.  So
 * every handler that reads or writes a site asks access_site() as soon as it knows the site.
 *
 * Browsers cannot keep a token secret.  So the routes that browsers send page views to take a
 * request without a token, if its page belongs to the site: if Origin, else Referer, is one of the
 * site's origins (`site.<name>.origins`).  So a page of another origin cannot count for the site.
 * Another program still can, because a program can send any Origin.
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
    const char *name;               /* the owner's name, for people to read; unique among tokens */
    uint8_t hash[ACCESS_HASH_SIZE]; /* SHA-256 of the token: its identity */
    unsigned scopes;                /* bits of enum access_scope */
    const struct slice *sites;      /* n_sites that the token may touch; n_sites 0: every site */
    size_t n_sites;
};

/* The scope that a route asks for; 0: the route needs no token.  @open_too: routes about the
 * process ask for a token as well (--metrics-token). */
unsigned access_needed(const struct route *route, bool open_too) MUST_CHECK;

/* The name of @scope: "ingest", "read" or "admin". */
const char *access_scope_name(enum access_scope scope);

/* May the request go on, as it shows no token?  Either its body may have the token (ROUTE_BASIC).
 * Or browsers send page views to its route, some site has origins, and the request says which page
 * it comes from: then access_site() judges.  False if it has Authorization. */
bool access_tokenless(const struct route *route, const struct http_exchange *exchange) MUST_CHECK;

/* May the exchange's token touch @site?  Where no tokens are in use everybody may; a token that is
 * bound to no site may touch all. */
bool access_has_site(const struct http_exchange *exchange, struct slice site) MUST_CHECK;

/* May the request touch @site, with its token or without one?  False: the response is a 403 that
 * names the site, or a 401 where no token was shown and the site has no origins. */
bool access_site(struct http_exchange *exchange, struct slice site) MUST_CHECK;

/* Read the parameter `site`, or take the default site.  False: the name is bad (400), or the token
 * may not touch the site (403), and the response says so. */
bool access_read_site(
    struct http_exchange *exchange, const struct params *params, struct slice *ret) MUST_CHECK;

#endif
