#include "handlers/ingest/events_reply.h"

#include <stdlib.h>

#include "handlers/http/app.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/reply.h"
#include "storage/base/buffer.h"

static json_t *list_errors(const struct event_batch *batch)
{
    json_t *errors = json_array();
    for (size_t i = 0; errors != NULL && i < batch->n_rejects; i++) {
        const struct event_reject *reject = &batch->rejects[i];
        json_array_append_new(errors, json_pack("{s:I,s:s,s:s}", "index", (json_int_t)reject->index,
                                          "pointer", reject->pointer, "detail", reject->detail));
    }
    return errors;
}

static json_t *list_drops(const struct event_batch *batch)
{
    json_t *drops = json_array();
    for (size_t i = 0; drops != NULL && i < batch->n_drops; i++) {
        const struct event_drop *drop = &batch->drops[i];
        json_array_append_new(drops, json_pack("{s:I,s:s}", "index", (json_int_t)drop->index,
                                         "reason", drop_reason_name(drop->reason)));
    }
    return drops;
}

void events_reply_accepted(struct http_response *response, const struct event_batch *batch)
{
    if (batch->rejected + batch->dropped == 0) { /* the usual answer, without a tree */
        static const char before[] = "{\"accepted\":", behind[] = ",\"rejected\":0,\"errors\":[]}";
        char text[sizeof(before) + 20 + sizeof(behind)];
        size_t n = sizeof(before) - 1;
        memcpy(text, before, n);
        n += decimal_print((int64_t)batch->n, text + n);
        memcpy(text + n, behind, sizeof(behind) - 1);
        reply_text(response, 202, "application/json", text, n + sizeof(behind) - 1);
        return;
    }
    json_t *answer = json_pack("{s:I,s:I,s:o}", "accepted", (json_int_t)batch->n, "rejected",
        (json_int_t)batch->rejected, "errors", list_errors(batch));
    if (batch->dropped > 0) {
        json_object_set_new(answer, "dropped", list_drops(batch));
        json_object_set_new(answer, "dropped_total", json_integer((json_int_t)batch->dropped));
    }
    reply_json(response, 202, answer);
}

/* Append one member of "first".  The name of an action needs no escape in JSON. */
static void put_first(struct buffer *out, const struct first_event *event)
{
    buffer_text(out, "{\"index\":");
    buffer_decimal(out, event->index);
    for (unsigned i = 0; i < event->n_actions; i++) {
        buffer_text(out, i == 0 ? ",\"actions\":[\"" : "\",\"");
        buffer_append(out, event->actions[i].p, event->actions[i].n);
    }
    buffer_text(out, "\"]}");
}

bool events_reply_add_first(
    struct http_response *response, const struct first_event *found, size_t n)
{
    struct buffer body;
    if (response->body_n == 0) {
        return false; /* memory was out when the 202 was made */
    }
    buffer_init(&body);
    buffer_append(&body, response->body, response->body_n - 1); /* all but the last brace */
    buffer_text(&body, ",\"first\":[");
    for (size_t i = 0; i < n; i++) {
        buffer_text(&body, i == 0 ? "" : ",");
        put_first(&body, &found[i]);
    }
    buffer_text(&body, "]}");
    if (body.failed) {
        buffer_release(&body);
        return false;
    }
    free(response->body);
    response->body = body.p;
    response->body_n = body.n;
    return true;
}

/* Answer 422 with @errors.  The detail names the first reason, too, because the logs of many
 * senders have nothing but the detail. */
static void reply_reason(
    struct http_response *response, const struct event_batch *batch, json_t *errors, bool strict)
{
    const char *reason = batch->n_rejects > 0 ? batch->rejects[0].detail : "";
    if (strict && batch->n + batch->dropped > 0) {
        problem_reply_errors(response, PROBLEM_UNACCEPTABLE, errors,
            "%zu of the events are not acceptable, and strict was asked for; the first: %s",
            batch->rejected, reason);
    } else if (batch->rejected == 1) {
        problem_reply_errors(
            response, PROBLEM_UNACCEPTABLE, errors, "the event is not acceptable: %s", reason);
    } else {
        problem_reply_errors(response, PROBLEM_UNACCEPTABLE, errors,
            "none of the %zu events is acceptable; the first: %s", batch->rejected, reason);
    }
}

void events_reply_rejected(
    struct http_response *response, const struct event_batch *batch, bool strict)
{
    json_t *errors = list_errors(batch);
    if (batch->untimed) {
        problem_reply_errors(
            response, PROBLEM_UNACCEPTABLE, errors, "with dedupe=body every event must have a ts");
    } else {
        reply_reason(response, batch, errors, strict);
    }
}

void events_reply_malformed(struct http_response *response, const struct event_batch *batch)
{
    problem_reply(response, PROBLEM_MALFORMED, "line %zu, column %zu: %s", batch->line,
        batch->column, batch->detail);
}

void events_reply_forbidden(struct http_response *response, struct slice site)
{
    json_t *detail = json_sprintf("the token is not for site %.*s", (int)site.n, site.p);
    problem_reply_errors(response, PROBLEM_FORBIDDEN,
        json_pack("[{s:s,s:o?}]", "pointer", "/site", "detail", detail),
        "site: the token is not for site %.*s", (int)site.n, site.p);
}

void events_reply_failed(struct http_exchange *exchange, enum storage_err err)
{
    struct app_stats *stats = exchange->app->stats;
    app_stats_add(
        err == STORAGE_UNKNOWN ? &stats->rejected_unknown : &stats->rejected_unavailable, 1);
    problem_from_storage(&exchange->response, err, exchange->job.detail);
}
