#include "handlers/question/window_reply.h"

#include <math.h>
#include <stdio.h>

#include "handlers/http/app.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/reply.h"
#include "handlers/text/timestamp.h"
#include "storage/job/counted_name.h"

#define Z95 1.96 /* 95 % of a normal distribution lies within so many standard deviations */

json_t *window_time_json(int64_t at_s)
{
    char text[TIMESTAMP_TEXT];
    timestamp_print(at_s, text);
    return json_string(text);
}

void window_put_time(struct buffer *out, int64_t at_s)
{
    char text[TIMESTAMP_TEXT];
    timestamp_print(at_s, text);
    buffer_text(out, "\"");
    buffer_text(out, text);
    buffer_text(out, "\"");
}

json_int_t window_figure(uint64_t value)
{
    return (json_int_t)(value > INT64_MAX / 2 ? INT64_MAX / 2 : value);
}

json_t *window_pages_json(const struct slice *pages, size_t n)
{
    if (n == 0) {
        return json_null();
    }
    json_t *list = json_array();
    for (size_t i = 0; list != NULL && i < n; i++) {
        bool is_marked = counted_name_mark(pages[i]) != '\0'; /* a named event, or a section */
        struct slice name = is_marked ? event_name_bare(pages[i]) : pages[i];
        json_array_append_new(list, text_json(name));
    }
    return list;
}

json_t *window_error_json(uint64_t value)
{
    double margin = Z95 * WINDOW_STANDARD_ERROR * (double)value;
    double low = round((double)value - margin);
    double high = round((double)value + margin);
    return json_pack("{s:f,s:I,s:I}", "relative", WINDOW_STANDARD_ERROR, "low", (json_int_t)low,
        "high", (json_int_t)high);
}

static bool same_bucket(const struct bucket *a, const struct bucket *b)
{
    return a->level == b->level && a->start_s == b->start_s && a->end_s == b->end_s;
}

/* The level and the times of a bucket, as texts.  All keys of a bucket, which are neighbours in the
 * list, share these texts. */
static json_t *bucket_json(const struct bucket *bucket)
{
    return json_pack("[s,o,o]", level_name(bucket->level), window_time_json(bucket->start_s),
        window_time_json(bucket->end_s));
}

static json_t *list_json(const struct counted_key *keys, size_t n)
{
    json_t *list = json_array();
    json_t *texts = NULL;
    for (size_t i = 0; list != NULL && i < n; i++) {
        const struct counted_key *key = &keys[i];
        if (i == 0 || !same_bucket(&key->bucket, &key[-1].bucket)) {
            json_decref(texts);
            texts = bucket_json(&key->bucket);
        }
        json_array_append_new(
            list, json_pack("{s:O,s:O,s:O,s:o}", "level", json_array_get(texts, 0), "from",
                      json_array_get(texts, 1), "to", json_array_get(texts, 2), "key",
                      json_stringn(key->key, key->n)));
    }
    json_decref(texts);
    return list;
}

json_t *window_cover_json(
    const uint32_t per_level[LEVELS], bool explain, const struct counted_key *keys, size_t n_keys)
{
    json_int_t total = 0;
    json_t *cover = json_object();
    for (int level = 0; level < LEVELS; level++) {
        total += per_level[level];
    }
    json_object_set_new(cover, "keys", json_integer(total));
    for (int level = 0; level < LEVELS; level++) {
        json_object_set_new(cover, level_name((enum level)level), json_integer(per_level[level]));
    }
    if (explain) {
        json_object_set_new(cover, "list", list_json(keys, n_keys));
    }
    return cover;
}

json_t *window_head_json(const struct window_params *asked, struct window answered)
{
    json_t *root = json_object();
    json_object_set_new(root, "site", text_json(asked->site));
    json_object_set_new(root, "from", window_time_json(answered.from_s));
    json_object_set_new(root, "to", window_time_json(answered.to_s));
    json_object_set_new(root, "tz", json_string(zone_name(asked->zone)));
    return root;
}

/* Answer as window_not_kept() does.  The window's parameters are `from` and `to` with @number
 * behind them, which is "" or "2". */
static void not_kept(
    struct http_exchange *exchange, struct window nearest, const char *number, const char *how)
{
    struct http_response *response = &exchange->response;
    char name[8];
    char from[TIMESTAMP_TEXT];
    char to[TIMESTAMP_TEXT];
    (void)snprintf(name, sizeof(name), "from%s", number);
    if (nearest.from_s == nearest.to_s) {
        problem_reply_parameter(
            response, PROBLEM_UNACCEPTABLE, name, "nothing of this window is kept any more");
        return;
    }
    timestamp_print(nearest.from_s, from);
    timestamp_print(nearest.to_s, to);
    problem_reply_parameter(response, PROBLEM_UNACCEPTABLE, name,
        "the window is not kept at this precision any more; the nearest one that can be answered "
        "is from%s=%s&to%s=%s%s",
        number, from, number, to, how);
}

void window_not_kept(struct http_exchange *exchange, struct window nearest, const char *how)
{
    not_kept(exchange, nearest, "", how);
}

void window_second_not_kept(struct http_exchange *exchange, struct window nearest)
{
    not_kept(exchange, nearest, "2", WINDOW_OUTER);
}

void window_tail_json(const struct http_exchange *exchange, const struct window_question *asked,
    bool has_visitors, json_t *root)
{
    json_object_set_new(root, "cover",
        window_cover_json(asked->per_level, asked->explain, asked->keys, asked->n_keys));
    flag_json(root, "spans_rotation",
        has_visitors && storage_spans_rotation(exchange->app->storage, asked->answered));
}

void window_no_set(struct http_exchange *exchange, struct slice site, struct slice name)
{
    problem_reply_parameter(&exchange->response, PROBLEM_NOT_FOUND, "pageset",
        "site %.*s has no page set %.*s; PUT /pagesets/%.*s makes one", (int)site.n, site.p,
        (int)name.n, name.p, (int)name.n, name.p);
}

void window_too_broad(
    struct http_exchange *exchange, const struct window_params *asked, bool without_step)
{
    bool pages = asked->n_pages > 2 || asked->pageset.n > 0;
    bool future = asked->window.to_s > exchange->request.now_ms / 1000 + STORAGE_FUTURE_MAX_S;
    problem_reply_parameter(&exchange->response, PROBLEM_UNACCEPTABLE, "from",
        "the window needs too many keys: ask %s%s%s%sfor a shorter one",
        asked->explain ? "without explain, or " : "", without_step ? "without step, or " : "",
        pages ? "for fewer pages, or " : "", future ? "with to=now, or " : "");
}

void window_failed(
    struct http_exchange *exchange, const struct window_params *asked, struct window nearest)
{
    const struct storage_job *job = &exchange->job;
    if (job->err == STORAGE_NOT_KEPT) {
        window_not_kept(exchange, nearest, WINDOW_OUTER);
    } else if (job->err == STORAGE_TOO_BROAD) {
        window_too_broad(exchange, asked, false);
    } else if (job->err == STORAGE_NO_SET) {
        window_no_set(exchange, asked->site, asked->pageset);
    } else {
        problem_from_storage(&exchange->response, job->err, job->detail);
    }
}
