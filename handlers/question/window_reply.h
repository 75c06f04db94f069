/* window_reply.h - what answers about a window have in common: members, and problems.
 *
 * Layer: handlers.  Thread-safe: no state.
 *
 * Functions that return json_t return a new reference; NULL if memory is out.
 */
#ifndef HANDLERS_QUESTION_WINDOW_REPLY_H
#define HANDLERS_QUESTION_WINDOW_REPLY_H

#include <jansson.h>

#include "handlers/http/http.h"
#include "handlers/question/window_params.h"
#include "storage/base/buffer.h"

#define WINDOW_STANDARD_ERROR 0.0081 /* that of Redis's HyperLogLog, 1.04 / sqrt(16384) */

/* ---- members ---- */

/* A time as RFC 3339, in UTC: a JSON string.  The second function appends it to @out, JSON text. */
json_t *window_time_json(int64_t at_s);
void window_put_time(struct buffer *out, int64_t at_s);

/* @value as a figure of JSON.  It is bounded, because a forged sketch can estimate 2^63 (see
 * storage/sketch/hll.h). */
json_int_t window_figure(uint64_t value);

/* The @n pages, or named events or sections without their marks, as an array.  If @n is 0 the
 * result is null, which stands for the whole site. */
json_t *window_pages_json(const struct slice *pages, size_t n);

/* {"relative","low","high"}: how far @value, a HyperLogLog's estimate, may be off. */
json_t *window_error_json(uint64_t value);

/* {"keys","minute",..[,"list"]}: how many keys of each level were read, and with @explain which. */
json_t *window_cover_json(
    const uint32_t per_level[LEVELS], bool explain, const struct counted_key *keys, size_t n_keys);

/* An object with the site and tz that were asked for, and from and to of the window that was
 * answered. */
json_t *window_head_json(const struct window_params *asked, struct window answered);

/* Add to @root the members that end an answer: cover, and spans_rotation if the answer has visitors
 * (@has_visitors) and visitors were hashed anew within the window. */
void window_tail_json(const struct http_exchange *exchange, const struct window_question *asked,
    bool has_visitors, json_t *root);

/* ---- problems ---- */

/* Answer 404: the site has no such page set. */
void window_no_set(struct http_exchange *exchange, struct slice site, struct slice name);

/* Answer 422: the window is not kept at this precision any more.  @nearest is the nearest window
 * that could be answered; it is empty (from_s == to_s) if there is none.  @how is appended to the
 * detail, and says what else to ask for. */
void window_not_kept(struct http_exchange *exchange, struct window nearest, const char *how);
#define WINDOW_OUTER " (round=outer takes it)"

/* Answer 422: the second window of the question, from2 and to2, is not kept at this precision any
 * more.  @nearest is as in window_not_kept(). */
void window_second_not_kept(struct http_exchange *exchange, struct window nearest);

/* Answer 422: the question needs too many keys.  @without_step: it needs few enough without a step.
 */
void window_too_broad(
    struct http_exchange *exchange, const struct window_params *asked, bool without_step);

/* Answer for the exchange's job, which failed.  @nearest is as in window_not_kept(). */
void window_failed(
    struct http_exchange *exchange, const struct window_params *asked, struct window nearest);

#endif
