/* tokens.h - the tokens in use, and the one place where the token of a request is judged.
 *
 * Layer: service.  The set of tokens is replaced as a whole when the file is read again.  A request
 * under way keeps the set that it was judged by.
 *
 * Thread safety: open, reload and close from one thread, the others from any thread.  Close after
 * all requests have ended.
 */
#ifndef SERVICE_TOKENS_TOKENS_H
#define SERVICE_TOKENS_TOKENS_H

#include "handlers/http/http.h"
#include "service/tokens/token_file.h"
#include "storage/base/compiler.h"

struct tokens;

/* Read the file @path; the path is copied.  NULL: *ret_error, TOKEN_FILE_ERROR bytes, says why.
 * @open_too: routes about the process ask for a token, too (access_needed()). */
struct tokens *tokens_open(const char *path, bool open_too, char *ret_error) MUST_CHECK;
void tokens_close(struct tokens *tokens); /* NULL is fine */

/* Read the file again.  False: *ret_error, TOKEN_FILE_ERROR bytes, says why, and the old tokens
 * stay. */
bool tokens_reload(struct tokens *tokens, char *ret_error) MUST_CHECK;

/* How many tokens there are. */
size_t tokens_count(struct tokens *tokens);

/* May the exchange's request use @route?  *ret_held is NULL, or a set to be let go when the
 * exchange has ended.
 *
 *   result  exchange->access    response
 *   true    the token's, or NULL if the route needs none
 *   true    NULL, and exchange->tokenless: see access_tokenless()
 *   false                       401 with WWW-Authenticate, or 403 (RFC 6750)
 *   false                       400, if the request has two Authorization fields */
bool tokens_admit(struct tokens *tokens, const struct route *route, struct http_exchange *exchange,
    struct token_set **ret_held) MUST_CHECK;

/* The same for the token @shown, which the request's body has, after tokens_admit() has set
 * exchange->tokenless. */
bool tokens_show(struct tokens *tokens, const struct route *route, struct slice shown,
    struct http_exchange *exchange, struct token_set **ret_held) MUST_CHECK;

void tokens_let_go(struct token_set *held); /* NULL is fine */

#endif
