#include "handlers/ingest/segment_json.h"

#include <stdlib.h>

#include "handlers/text/check.h"
#include "handlers/text/json_scan.h"
#include "handlers/text/timestamp.h"
#include "handlers/text/url.h"
#include "storage/base/index.h"
#include "storage/job/counted_name.h"

#define DEPTH_MAX 64 /* nesting of a body: programs put anything into `properties` and `traits` */

struct decoder {
    struct json_scan scan;
    enum segment_call call;
    const struct event_rules *rules;
    struct segment_body *body;
    struct segment_message message;
    bool has_batch, nomem, too_many;
};

static const char *const call_names[] = {
    [SEGMENT_BATCH] = "batch",
    [SEGMENT_PAGE] = "page",
    [SEGMENT_TRACK] = "track",
    [SEGMENT_IDENTIFY] = "identify",
    [SEGMENT_ALIAS] = "alias",
    [SEGMENT_GROUP] = "group",
    [SEGMENT_SCREEN] = "screen",
};

enum segment_call segment_call_of(struct slice name)
{
    for (size_t i = 0; i < SEGMENT_UNKNOWN; i++) {
        if (slice_equal(name, slice_of(call_names[i]))) {
            return (enum segment_call)i;
        }
    }
    return SEGMENT_UNKNOWN;
}

enum segment_call segment_call_of_path(struct slice part)
{
    for (size_t i = 0; i < SEGMENT_UNKNOWN; i++) {
        if (part.n == 1 && part.p[0] == call_names[i][0]) {
            return (enum segment_call)i;
        }
    }
    return segment_call_of(part);
}

static bool check(struct segment_message *message, const char *at, const char *fault)
{
    if (fault != NULL) {
        segment_message_refuse(message, at, fault);
    }
    return fault == NULL;
}

/* Make the event a page view: read its page. */
static void read_page(struct segment_message *message, struct event *event)
{
    struct url url;
    if (url_split(message->url, &url)) {
        event->page = url.path.n > 0 ? url.path : SLICE("/");
        (void)check(message, "properties.url", event_check_page(event->page));
    } else if (message->path.n > 0) {
        event->page = message->path;
        (void)check(message, "properties.path", event_check_page(event->page));
    } else {
        segment_message_refuse(
            message, "properties.url", "an absolute URL, or a path, is required of a page");
    }
}

/* Make the event a named event: read its name. */
static void read_name(struct segment_message *message, struct event *event)
{
    if (message->event.n == 0) {
        segment_message_refuse(message, "event", "is required of track");
    } else if (check(message, "event", event_check_name(message->event))) {
        event->page = event_name_mark_before(message->event);
    }
}

static void read_who_and_when(
    const struct decoder *d, struct segment_message *message, struct event *event)
{
    event->user = message->user;
    event->visitor = message->visitor;
    event->agent = message->agent;
    if (message->user.n > 0) {
        (void)check(message, "userId", event_check_user(message->user));
    }
    if (message->visitor.n > 0) {
        (void)check(message, "anonymousId", event_check_visitor(message->visitor));
    }
    if (message->address.n > 0) {
        (void)check(message, "context.ip", event_parse_address(message->address, &event->address));
    }
    if (message->agent.n > 0) {
        (void)check(message, "context.userAgent", event_check_agent(message->agent));
    }
    if (message->timestamp.n > 0 && check(message, "timestamp",
                                        timestamp_rfc3339(message->timestamp, &event->at_s)
                                            ? NULL
                                            : "must be RFC 3339 with an offset")) {
        (void)check(message, "timestamp",
            event_check_time(event->at_s, d->rules->oldest_s, d->rules->latest_s));
    }
}

static void note_id(struct segment_body *body, struct slice id)
{
    body->all_have_ids = body->all_have_ids && id.n > 0;
    buffer_append(&body->ids, id.p, id.n);
    buffer_append(&body->ids, "", 1);
}

static void reject(struct segment_body *body, const struct segment_message *message)
{
    if (body->rejected++ == 0) {
        body->fault_index = body->n_messages - 1;
        body->fault_at = message->fault_at;
        body->fault = message->fault;
    }
}

/* Keep or drop the valid event.  False: out of memory. */
static bool keep(struct decoder *d, const struct event *event)
{
    struct segment_body *body = d->body;
    switch (event_drop_reason(d->rules, event)) {
    case DROP_ROBOT:
        body->dropped_robots++;
        return true;
    case DROP_IGNORED:
        body->dropped_ignored++;
        return true;
    case DROP_NOT:
        break;
    }
    if (!array_reserve(&body->events, &body->capacity, body->n, sizeof(*body->events))) {
        return false;
    }
    if (!array_reserve(&body->traits, &body->traits_capacity, body->n, sizeof(*body->traits))) {
        return false;
    }
    body->traits[body->n] = d->message.traits;
    body->traits[body->n].url = d->message.url;
    if (d->message.traits.referrer.n == 0) {
        body->traits[body->n].referrer = d->message.referrer;
    }
    body->events[body->n++] = *event;
    return true;
}

/* Judge the message that was read.  False: out of memory. */
static bool judge(struct decoder *d, enum segment_call type)
{
    struct segment_message *message = &d->message;
    struct segment_body *body = d->body;
    struct event event = {.at_s = d->rules->now_s};
    bool counts = type == SEGMENT_PAGE || type == SEGMENT_TRACK;
    body->n_messages++;
    note_id(body, message->id);
    if (d->scan.fault != NULL) {
        segment_message_refuse(message, "text", d->scan.fault);
        d->scan.fault = NULL;
    }
    if (type == SEGMENT_UNKNOWN || type == SEGMENT_BATCH) {
        segment_message_refuse(
            message, "type", "must be page, track, identify, alias, group or screen");
    }
    if (counts) {
        read_who_and_when(d, message, &event);
    }
    if (type == SEGMENT_PAGE) {
        read_page(message, &event);
    } else if (type == SEGMENT_TRACK) {
        read_name(message, &event);
    }
    if (message->fault != NULL) {
        reject(body, message);
        return true;
    }
    if (!counts) {
        body->uncounted++;
        return true;
    }
    return keep(d, &event);
}

static bool take_message(struct decoder *d)
{
    if (d->body->n_messages == d->rules->max_events) {
        d->too_many = true;
        return false;
    }
    if (!segment_message_read(&d->scan, &d->message)) {
        return false;
    }
    d->nomem = !judge(d, segment_call_of(d->message.type));
    return !d->nomem;
}

static bool take_batch_member(struct decoder *d, struct slice name)
{
    if (slice_equal(name, SLICE("writeKey"))) {
        d->body->write_key = (struct slice){NULL, 0}; /* a value that is no string is ignored */
        return json_scan_peek(&d->scan) == SCAN_STRING
                   ? json_scan_string(&d->scan, &d->body->write_key)
                   : json_scan_skip(&d->scan);
    }
    if (!slice_equal(name, SLICE("batch"))) {
        return json_scan_skip(&d->scan);
    }
    if (json_scan_peek(&d->scan) != SCAN_ARRAY) {
        return json_scan_fail(&d->scan, "batch must be an array");
    }
    if (d->has_batch) {
        return json_scan_fail(&d->scan, "batch is given twice");
    }
    d->has_batch = true;
    d->scan.fault = NULL; /* an unusable text before the batch is no fault of a message */
    enum scan_step step = json_scan_open(&d->scan, ']');
    for (; step == SCAN_ITEM; step = json_scan_next(&d->scan, ']')) {
        if (!take_message(d)) {
            return false;
        }
    }
    return step == SCAN_CLOSED;
}

static bool take_batch(struct decoder *d)
{
    enum scan_step step = json_scan_open(&d->scan, '}');
    for (; step == SCAN_ITEM; step = json_scan_next(&d->scan, '}')) {
        struct slice name;
        if (!json_scan_name(&d->scan, &name) || !take_batch_member(d, name)) {
            return false;
        }
    }
    return step == SCAN_CLOSED;
}

static bool decode(struct decoder *d)
{
    if (json_scan_peek(&d->scan) != SCAN_OBJECT) {
        return json_scan_fail(&d->scan, "an object is expected");
    }
    bool ok =
        d->call == SEGMENT_BATCH ? take_batch(d) : segment_message_read(&d->scan, &d->message);
    if (!ok || !json_scan_finish(&d->scan)) {
        return false;
    }
    if (d->call == SEGMENT_BATCH) {
        return d->has_batch || json_scan_fail(&d->scan, "batch is missing");
    }
    d->body->write_key = d->message.write_key;
    d->nomem = !judge(d, d->call);
    return !d->nomem;
}

enum segment_result segment_decode(char *body, size_t n, enum segment_call call,
    const struct event_rules *rules, struct segment_body *ret)
{
    struct decoder d = {.call = call, .rules = rules, .body = ret};
    *ret = (struct segment_body){.all_have_ids = true};
    buffer_init(&ret->ids);
    json_scan_init(&d.scan, body, n, DEPTH_MAX);
    bool ok = decode(&d);
    if (d.nomem || ret->ids.failed) {
        return SEGMENT_NOMEM;
    }
    if (d.too_many) {
        return SEGMENT_TOO_MANY;
    }
    if (!ok) {
        json_scan_position(&d.scan, &ret->line, &ret->column);
        ret->detail = d.scan.error;
        return SEGMENT_MALFORMED;
    }
    return SEGMENT_OK;
}

void segment_body_release(struct segment_body *body)
{
    free(body->events);
    free(body->traits);
    arena_release(&body->arena);
    buffer_release(&body->ids);
    *body = (struct segment_body){0};
}
