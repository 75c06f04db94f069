#include "handlers/ingest/segment_message.h"

#include "handlers/text/check.h"

struct message_reader {
    struct json_scan *scan;
    struct segment_message *message;
};

void segment_message_refuse(struct segment_message *message, const char *at, const char *fault)
{
    if (message->fault == NULL) {
        message->fault_at = at;
        message->fault = fault;
    }
}

/* Take a string, or null.  Another value is a fault of the member @at. */
static bool take_text(struct message_reader *r, const char *at, struct slice *ret)
{
    enum scan_kind kind = json_scan_peek(r->scan);
    *ret = (struct slice){NULL, 0};
    if (kind == SCAN_STRING) {
        return json_scan_string(r->scan, ret);
    }
    if (kind != SCAN_NULL) {
        segment_message_refuse(r->message, at, "must be a string");
    }
    return json_scan_skip(r->scan);
}

static bool take_user(struct message_reader *r)
{
    struct json_number number;
    if (json_scan_peek(r->scan) != SCAN_NUMBER) {
        return take_text(r, "userId", &r->message->user);
    }
    if (!json_scan_number(r->scan, &number)) {
        return false;
    }
    r->message->user = number.text;
    if (!number.integer) {
        segment_message_refuse(r->message, "userId", "must be a string or an integer");
    }
    return true;
}

/* Take an object, each of its members by @take.  A value that is no object is ignored. */
static bool take_object(
    struct message_reader *r, bool (*take)(struct message_reader *r, struct slice name))
{
    if (json_scan_peek(r->scan) != SCAN_OBJECT) {
        return json_scan_skip(r->scan);
    }
    enum scan_step step = json_scan_open(r->scan, '}');
    for (; step == SCAN_ITEM; step = json_scan_next(r->scan, '}')) {
        struct slice name;
        if (!json_scan_name(r->scan, &name) || !take(r, name)) {
            return false;
        }
    }
    return step == SCAN_CLOSED;
}

static bool take_property(struct message_reader *r, struct slice name)
{
    if (slice_equal(name, SLICE("url"))) {
        return take_text(r, "properties.url", &r->message->url);
    }
    if (slice_equal(name, SLICE("referrer")) && json_scan_peek(r->scan) == SCAN_STRING) {
        return json_scan_string(r->scan, &r->message->referrer);
    }
    return slice_equal(name, SLICE("path")) ? take_text(r, "properties.path", &r->message->path)
                                            : json_scan_skip(r->scan);
}

/* Take a text for a dimension.  A text that cannot be a value is ignored. */
static bool take_value(struct message_reader *r, const char *at, struct slice *ret)
{
    if (!take_text(r, at, ret)) {
        return false;
    }
    if (event_check_value(*ret) != NULL) {
        *ret = (struct slice){NULL, 0};
    }
    return true;
}

static bool take_campaign(struct message_reader *r, struct slice name)
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
            return take_value(r, "context.campaign", &r->message->traits.utm[i]);
        }
    }
    return json_scan_skip(r->scan);
}

static bool take_page(struct message_reader *r, struct slice name)
{
    return slice_equal(name, SLICE("referrer"))
               ? take_text(r, "context.page.referrer", &r->message->traits.referrer)
               : json_scan_skip(r->scan);
}

static bool take_context(struct message_reader *r, struct slice name)
{
    if (slice_equal(name, SLICE("campaign"))) {
        return take_object(r, take_campaign);
    }
    if (slice_equal(name, SLICE("page"))) {
        return take_object(r, take_page);
    }
    if (slice_equal(name, SLICE("locale"))) {
        return take_value(r, "context.locale", &r->message->traits.language);
    }
    if (slice_equal(name, SLICE("ip"))) {
        return take_text(r, "context.ip", &r->message->address);
    }
    return slice_equal(name, SLICE("userAgent"))
               ? take_text(r, "context.userAgent", &r->message->agent)
               : json_scan_skip(r->scan);
}

static bool take_member(struct message_reader *r, struct slice name)
{
    struct segment_message *message = r->message;
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
            return take_text(r, texts[i].at, texts[i].to);
        }
    }
    if (slice_equal(name, SLICE("userId"))) {
        return take_user(r);
    }
    if (slice_equal(name, SLICE("properties"))) {
        return take_object(r, take_property);
    }
    return slice_equal(name, SLICE("context")) ? take_object(r, take_context)
                                               : json_scan_skip(r->scan);
}

bool segment_message_read(struct json_scan *scan, struct segment_message *ret)
{
    struct message_reader reader = {scan, ret};
    *ret = (struct segment_message){.fault = NULL};
    if (json_scan_peek(scan) != SCAN_OBJECT) {
        segment_message_refuse(ret, "message", "must be an object");
    }
    return take_object(&reader, take_member);
}
