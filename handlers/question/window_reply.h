/* window_reply.h - the members that answers about a window have in common.
 *
 * Layer: handlers.  Thread-safe: no state.
 */
#ifndef HANDLERS_QUESTION_WINDOW_REPLY_H
#define HANDLERS_QUESTION_WINDOW_REPLY_H

#include <jansson.h>

#include "handlers/http/app.h"
#include "handlers/http/http.h"
#include "handlers/question/window_params.h"

#define WINDOW_STANDARD_ERROR 0.0081 /* of Redis's HyperLogLog: 1.04 / sqrt(16384) */

/* RFC 3339, in UTC. */
json_t *window_time_json(int64_t at_s);

/* @n pages; null for none: the whole site. */
json_t *window_pages_json(const struct slice *pages, size_t n);

/* {"relative","low","high"} of a HyperLogLog's estimate. */
json_t *window_error_json(uint64_t value);

/* {"keys","minute",..[,"list"]}. */
json_t *window_cover_json(
    const uint32_t per_level[LEVELS], bool explain, const struct counted_key *keys, size_t n_keys);

/* site, from, to and tz of a question and the window that was answered. */
json_t *window_head_json(const struct window_params *asked, struct window answered);

/* Does the window reach over a border of rotation periods, so that a hashed visitor may have two
 * names? */
bool window_spans_rotation(const struct app *app, struct window window);

/* cover of a question about visitors, and whether its window spans rotation periods, into @root. */
void window_tail_json(
    const struct http_exchange *exchange, const struct window_question *asked, json_t *root);

/* 404: the site has no such page set. */
void window_no_set(struct http_exchange *exchange, struct slice site, struct slice name);

/* 422: @nearest could be answered, and @how else that is got (from_s == to_s: nothing could be). */
void window_not_kept(struct http_exchange *exchange, struct window nearest, const char *how);
#define WINDOW_OUTER " (round=outer takes it)"

/* 422: too many keys.  @without_step: it could be answered without a step. */
void window_too_broad(
    struct http_exchange *exchange, const struct window_params *asked, bool without_step);

/* The answer to a question that failed. */
void window_failed(
    struct http_exchange *exchange, const struct window_params *asked, struct window nearest);

#endif
