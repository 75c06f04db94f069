/* reply.h - answers that are what was asked for.
 *
 * Layer: handlers.  Thread-safe: no state.
 *
 * This is the one place that turns JSON values into bodies.  (Answers that are not what was asked
 * for are those of problem.h.)
 */
#ifndef HANDLERS_REPLY_REPLY_H
#define HANDLERS_REPLY_REPLY_H

#include <jansson.h>

#include "handlers/http/http.h"
#include "storage/base/buffer.h"
#include "storage/base/compiler.h"

#define REPLY_DIGITS 10 /* significant ones of a number that is not whole */

/* Answer @status with @json.  The reference is taken over.  Without memory for all of @json the
 * answer is a 503 problem (see json_memory.h); so it is if @json is NULL. */
void reply_json(struct http_response *response, unsigned status, json_t *json);

/* Answer 200 with an object: the members of @rest, an object with at least one, and behind them
 * @name, whose value is the JSON text @value.  The same as reply_json(), without a tree of a
 * thousand values.  The reference and the bytes of @value are taken over.  A 503 problem where
 * memory is out: @rest is NULL, or @value has failed. */
void reply_json_with(
    struct http_response *response, json_t *rest, const char *name, struct buffer *value);

/* Append @value to JSON text, as reply_json() prints it. */
void reply_put_real(struct buffer *out, double value);

/* @text, which is UTF-8, as a JSON string: a new reference; NULL if memory is out. */
static inline json_t *text_json(struct slice text)
{
    return json_stringn(text.p, text.n);
}

/* Give @object the member @name, true, if @is_so.  Else it has no such member. */
static inline void flag_json(json_t *object, const char *name, bool is_so)
{
    if (is_so) {
        json_object_set_new(object, name, json_true());
    }
}

/* Answer @status with @n bytes of @text, which are copied.  @content_type is static.  Without
 * memory the answer is a 503 problem. */
void reply_text(struct http_response *response, unsigned status, const char *content_type,
    const char *text, size_t n);

/* The same where @text is static: it is not copied, however many clients take it slowly. */
void reply_static(struct http_response *response, unsigned status, const char *content_type,
    const char *text, size_t n);

/* Answer @status without a body; an earlier body is freed. */
void reply_empty(struct http_response *response, unsigned status);

/* Add a header field whose @name and @text are static.  Where HTTP_HEADERS_MAX are there it is left
 * out.  (problem_add_header() adds one that is copied.) */
void reply_header(struct http_response *response, const char *name, const char *text);

/* Has the response a header field @name? */
bool reply_has_header(const struct http_response *response, const char *name) MUST_CHECK;

#endif
