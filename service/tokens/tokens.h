/* tokens.h - the tokens in use, and the one place where a request's is judged.
 *
 * Layer: service.  The set is replaced as a whole when the file is read again; requests under way
 * keep the one they were judged by.  Thread safety: tokens_admit and tokens_let_go from any thread;
 * open, reload and close from one, close after all requests have ended.
 */
#ifndef SERVICE_TOKENS_TOKENS_H
#define SERVICE_TOKENS_TOKENS_H

#include "handlers/http/http.h"
#include "service/tokens/token_file.h"

struct tokens;

/* Read @path, which is copied.  NULL: @ret_error (TOKEN_FILE_ERROR bytes) says why.  @open_too: see
 * access_needed. */
struct tokens *tokens_open(const char *path, bool open_too, char *ret_error) MUST_CHECK;
void tokens_close(struct tokens *tokens); /* NULL is harmless */

/* Read the file again.  False: @ret_error says why, and the tokens are those of before. */
bool tokens_reload(struct tokens *tokens, char *ret_error) MUST_CHECK;

/* How many there are. */
size_t tokens_count(struct tokens *tokens);

/* May a request with these header fields use @route?  True: exchange->access is the token's, or
 * NULL if none is needed.  False: the response is filled, 401 with WWW-Authenticate or 403 (RFC
 * 6750; two Authorization fields: 400).  *ret_held, if it is not NULL, is to be let go when the
 * exchange has ended. */
bool tokens_admit(struct tokens *tokens, const struct route *route, struct http_exchange *exchange,
    struct token_set **ret_held) MUST_CHECK;
void tokens_let_go(struct token_set *held); /* NULL is harmless */

#endif
