#include "handlers/ingest/segment_json.h"

#include <stdlib.h>

#include "handlers/text/check.h"
#include "handlers/text/json_scan.h"
#include "handlers/text/timestamp.h"
#include "handlers/text/url.h"
#include "storage/base/index.h"
#include "storage/job/counted_name.h"

#define DEPTH_MAX 64 /* of a body: SDKs send what programs put into `properties` and `traits` */

/* One message, as far as it is looked at. */
struct message {
    struct segment_traits traits;
    struct slice type, user, visitor, event, id, timestamp, url, path, address, agent, write_key;
    struct slice referrer;        /* of properties */
    const char *fault_at, *fault; /* the first fault, static; NULL: none so far */
};

struct decoder {
    struct json_scan scan;
    enum segment_call call;
    const struct event_rules *rules;
    struct segment_body *body;
    struct message message;
    bool has_batch, nomem, too_many;
};

enum segment_call segment_call_of(struct slice name)
{
    static const char *const names[] = {
        [SEGMENT_BATCH] = "batch",
        [SEGMENT_PAGE] = "page",
        [SEGMENT_TRACK] = "track",
        [SEGMENT_IDENTIFY] = "identify",
        [SEGMENT_ALIAS] = "alias",
        [SEGMENT_GROUP] = "group",
        [SEGMENT_SCREEN] = "screen",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (slice_equal(name, slice_of(names[i]))) {
            return (enum segment_call)i;
        }
    }
    return SEGMENT_UNKNOWN;
}

static void refuse(struct message *message, const char *at, const char *fault)
{
    if (message->fault == NULL) {
        message->fault_at = at;
        message->fault = fault;
    }
}

/* ---- members ---- */

/* Take a string, or null.  @at is the member's name, for what is neither. */
static bool take_text(struct decoder *d, const char *at, struct slice *ret)
{
    enum scan_kind kind = json_scan_peek(&d->scan);
    *ret = (struct slice){NULL, 0};
    if (kind == SCAN_STRING) {
        return json_scan_string(&d->scan, ret);
    }
    if (kind != SCAN_NULL) {
        refuse(&d->message, at, "must be a string");
    }
    return json_scan_skip(&d->scan);
}

static bool take_user(struct decoder *d)
{
    struct json_number number;
    if (json_scan_peek(&d->scan) != SCAN_NUMBER) {
        return take_text(d, "userId", &d->message.user);
    }
    if (!json_scan_number(&d->scan, &number)) {
        return false;
    }
    d->message.user = number.text;
    if (!number.integer) {
        refuse(&d->message, "userId", "must be a string or an integer");
    }
    return true;
}

/* Take each member of an object by @take.  What is no object is passed over. */
static bool take_object(struct decoder *d, bool (*take)(struct decoder *d, struct slice name))
{
    if (json_scan_peek(&d->scan) != SCAN_OBJECT) {
        return json_scan_skip(&d->scan);
    }
    enum scan_step step = json_scan_open(&d->scan, '}');
    for (; step == SCAN_ITEM; step = json_scan_next(&d->scan, '}')) {
        struct slice name;
        if (!json_scan_name(&d->scan, &name) || !take(d, name)) {
            return false;
        }
    }
    return step == SCAN_CLOSED;
}

static bool take_property(struct decoder *d, struct slice name)
{
    if (slice_equal(name, SLICE("url"))) {
        return take_text(d, "properties.url", &d->message.url);
    }
    if (slice_equal(name, SLICE("referrer")) && json_scan_peek(&d->scan) == SCAN_STRING) {
        return json_scan_string(&d->scan, &d->message.referrer);
    }
    return slice_equal(name, SLICE("path")) ? take_text(d, "properties.path", &d->message.path)
                                            : json_scan_skip(&d->scan);
}

/* Take a text of a dimension; what cannot be a value is passed over. */
static bool take_value(struct decoder *d, const char *at, struct slice *ret)
{
    if (!take_text(d, at, ret)) {
        return false;
    }
    if (event_check_value(*ret) != NULL) {
        *ret = (struct slice){NULL, 0};
    }
    return true;
}

static bool take_campaign(struct decoder *d, struct slice name)
{
    static const char *const names[UTM_N] = {
        [UTM_SOURCE] = "source",
        [UTM_MEDIUM] = "medium",
        [UTM_CAMPAIGN] = "name",
        [UTM_TERM] = "term",
        [UTM_CONTENT] = "content",
    };
    for (size_t i = 0; i < UTM_N; i++) {
        if (slice_equal(name, slice_of(names[i]))) {
            return take_value(d, "context.campaign", &d->message.traits.utm[i]);
        }
    }
    return json_scan_skip(&d->scan);
}

static bool take_page(struct decoder *d, struct slice name)
{
    return slice_equal(name, SLICE("referrer"))
               ? take_text(d, "context.page.referrer", &d->message.traits.referrer)
               : json_scan_skip(&d->scan);
}

static bool take_context(struct decoder *d, struct slice name)
{
    if (slice_equal(name, SLICE("campaign"))) {
        return take_object(d, take_campaign);
    }
    if (slice_equal(name, SLICE("page"))) {
        return take_object(d, take_page);
    }
    if (slice_equal(name, SLICE("locale"))) {
        return take_value(d, "context.locale", &d->message.traits.language);
    }
    if (slice_equal(name, SLICE("ip"))) {
        return take_text(d, "context.ip", &d->message.address);
    }
    return slice_equal(name, SLICE("userAgent"))
               ? take_text(d, "context.userAgent", &d->message.agent)
               : json_scan_skip(&d->scan);
}

static bool take_member(struct decoder *d, struct slice name)
{
    struct message *message = &d->message;
    const struct {
        struct slice name;
        const char *at;
        struct slice *to;
    } texts[] = {
        {SLICE("type"), "type", &message->type},
        {SLICE("event"), "event", &message->event},
        {SLICE("anonymousId"), "anonymousId", &message->visitor},
        {SLICE("messageId"), "messageId", &message->id},
        {SLICE("timestamp"), "timestamp", &message->timestamp},
        {SLICE("writeKey"), "writeKey", &message->write_key},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (slice_equal(name, texts[i].name)) {
            return take_text(d, texts[i].at, texts[i].to);
        }
    }
    if (slice_equal(name, SLICE("userId"))) {
        return take_user(d);
    }
    if (slice_equal(name, SLICE("properties"))) {
        return take_object(d, take_property);
    }
    return slice_equal(name, SLICE("context")) ? take_object(d, take_context)
                                               : json_scan_skip(&d->scan);
}

/* ---- messages ---- */

static bool check(struct message *message, const char *at, const char *fault)
{
    if (fault != NULL) {
        refuse(message, at, fault);
    }
    return fault == NULL;
}

/* The page of a page view. */
static void read_page(struct message *message, struct event *event)
{
    struct url url;
    if (url_split(message->url, &url)) {
        event->page = url.path.n > 0 ? url.path : SLICE("/");
        (void)check(message, "properties.url", event_check_page(event->page));
    } else if (message->path.n > 0) {
        event->page = message->path;
        (void)check(message, "properties.path", event_check_page(event->page));
    } else {
        refuse(message, "properties.url", "an absolute URL, or a path, is required of a page");
    }
}

/* The name of a named event. */
static void read_name(struct message *message, struct event *event)
{
    if (message->event.n == 0) {
        refuse(message, "event", "is required of track");
    } else if (check(message, "event", event_check_name(message->event))) {
        event->page = event_name_mark_before(message->event);
    }
}

static void read_who_and_when(const struct decoder *d, struct message *message, struct event *event)
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

static void reject(struct segment_body *body, const struct message *message)
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
    struct message *message = &d->message;
    struct segment_body *body = d->body;
    struct event event = {.at_s = d->rules->now_s};
    bool counts = type == SEGMENT_PAGE || type == SEGMENT_TRACK;
    body->n_messages++;
    note_id(body, message->id);
    if (d->scan.fault != NULL) {
        refuse(message, "text", d->scan.fault);
        d->scan.fault = NULL;
    }
    if (type == SEGMENT_UNKNOWN || type == SEGMENT_BATCH) {
        refuse(message, "type", "must be page, track, identify, alias, group or screen");
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
    d->message = (struct message){.fault = NULL};
    if (json_scan_peek(&d->scan) != SCAN_OBJECT) {
        refuse(&d->message, "message", "must be an object");
    }
    if (!take_object(d, take_member)) {
        return false;
    }
    d->nomem = !judge(d, segment_call_of(d->message.type));
    return !d->nomem;
}

static bool take_batch_member(struct decoder *d, struct slice name)
{
    if (slice_equal(name, SLICE("writeKey"))) {
        return take_text(d, "writeKey", &d->body->write_key);
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
    d->scan.fault = NULL; /* of a name or a text before: nobody's */
    enum scan_step step = json_scan_open(&d->scan, ']');
    for (; step == SCAN_ITEM; step = json_scan_next(&d->scan, ']')) {
        if (!take_message(d)) {
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
    if (!take_object(d, d->call == SEGMENT_BATCH ? take_batch_member : take_member) ||
        !json_scan_finish(&d->scan)) {
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
    char none[1] = ""; /* spares the scanner null pointers */
    struct decoder d = {.call = call, .rules = rules, .body = ret};
    *ret = (struct segment_body){.all_have_ids = true};
    buffer_init(&ret->ids);
    json_scan_init(&d.scan, n > 0 ? body : none, n, DEPTH_MAX);
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
