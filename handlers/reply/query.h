/* query.h - the query string of a request, read against the parameters that its endpoint takes.
 *
 * Layer: handlers.  Thread-safe: no state.
 *
 * All functions return whether the request may go on.  False, or NULL: the response is filled, with
 * a 400 that names the parameter at fault, or with a 503 where memory is out.
 */
#ifndef HANDLERS_REPLY_QUERY_H
#define HANDLERS_REPLY_QUERY_H

#include <stdbool.h>
#include <stddef.h>

#include "handlers/http/http.h"
#include "handlers/text/params.h"
#include "storage/base/compiler.h"

/* Read the query of @exchange, which may have the parameters of @specs, into @ret.  Release @ret
 * (params_release) in either case. */
bool query_read(struct http_exchange *exchange, const struct param_spec *specs, size_t n_specs,
    struct params *ret) MUST_CHECK;

/* Read the query of @exchange, which may have the parameters of @specs.  The result becomes the
 * state of the exchange, which frees it. */
struct params *query_begin(
    struct http_exchange *exchange, const struct param_spec *specs, size_t n_specs) MUST_CHECK;

/* Is the query empty?  For endpoints that take no parameters: a client that sends one expects it to
 * do something. */
bool query_empty(struct http_exchange *exchange) MUST_CHECK;

/* Read the parameter @name into @ret, which stays as it is where the parameter is not given.
 * @check returns what is wrong with a value; NULL: nothing is. */
bool query_text(struct http_exchange *exchange, const struct params *params, const char *name,
    const char *(*check)(struct slice value), struct slice *ret) MUST_CHECK;

/* Check the segment of the path that stands for the route's {@name}, by @check as above. */
bool query_segment(struct http_exchange *exchange, const char *name,
    const char *(*check)(struct slice value)) MUST_CHECK;

/* Read the parameter @name, a whole number from 1 to @max, into @ret, which stays as it is where
 * the parameter is not given. */
bool query_number(struct http_exchange *exchange, const struct params *params, const char *name,
    size_t max, size_t *ret) MUST_CHECK;

/* Read the flag @name; *ret is false where the flag is not given. */
bool query_flag(struct http_exchange *exchange, const struct params *params, const char *name,
    bool *ret) MUST_CHECK;

/* Is the parameter @name given? */
bool query_has(
    struct http_exchange *exchange, const struct params *params, const char *name) MUST_CHECK;

/* Answer 400: @detail says what is wrong with @parameter.  Returns false. */
bool query_refuse(struct http_exchange *exchange, const char *parameter, const char *detail);

#endif
