/* reply.h - answers that are no problem documents: JSON, text, or no body.
 *
 * Layer: handlers.  Thread-safe: no state.
 *
 * This is the one place that turns JSON values into bodies.  (Problem documents are made
 * by problem.h.)
 */
#ifndef HANDLERS_REPLY_REPLY_H
#define HANDLERS_REPLY_REPLY_H

#include <jansson.h>

#include "handlers/http/http.h"
#include "storage/base/buffer.h"
#include "storage/base/compiler.h"

#define REPLY_DIGITS 10 /* significant digits of a number that is not whole */

/* Answer @status with @json.  The reference is taken over.  If @json is NULL, or memory was out for
 * a part of it, the answer is a 503 problem (see json_memory.h). */
void reply_json(struct http_response *response, unsigned status, json_t *json);

/* Answer 200 with an object: the members of @rest, an object with at least one, and behind them
 * @name, whose value is the JSON text @value.  So a long list needs no tree of a thousand values.
 * The reference to @rest and the bytes of @value are taken over.  If memory is out (@rest is NULL,
 * say, or @value has failed) the answer is a 503 problem. */
void reply_json_with(
    struct http_response *response, json_t *rest, const char *name, struct buffer *value);

/* Append @value to @out, JSON text, as reply_json() prints numbers. */
void reply_put_real(struct buffer *out, double value);

/* @text, which is UTF-8, as a JSON string: a new reference; NULL if memory is out. */
static inline json_t *text_json(struct slice text)
{
    return json_stringn(text.p, text.n);
}

/* Give @object the member @name with the value true, if @is_so.  Else the member is left out. */
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

/* Answer @status with @n bytes of @text, which is static and is not copied: many slow clients cost
 * no memory then. */
void reply_static(struct http_response *response, unsigned status, const char *content_type,
    const char *text, size_t n);

/* Answer @status without a body; an earlier body is freed. */
void reply_empty(struct http_response *response, unsigned status);

/* Add a header field whose @name and @text are static.  The field is left out where the response
 * has HTTP_HEADERS_MAX already.  (problem_add_header() copies its value.) */
void reply_header(struct http_response *response, const char *name, const char *text);

/* Has the response a header field @name? */
bool reply_has_header(const struct http_response *response, const char *name) MUST_CHECK;

#endif
