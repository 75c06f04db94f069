#include "service/formats/json_log.h"

#include "handlers/text/json_value.h"

#define DEPTH_MAX 32

/* These names are parents of others, and so are compared by their addresses. */
static const char caddy_request[] = "request", caddy_headers[] = "headers";

static const struct log_member caddy[] = {
    {NULL, "ts", LOG_FIELD_TIME},
    {NULL, "status", LOG_FIELD_STATUS},
    {NULL, caddy_request, LOG_FIELD_OBJECT},
    {caddy_request, "client_ip", LOG_FIELD_CLIENT},
    {caddy_request, "remote_ip", LOG_FIELD_CLIENT},
    {caddy_request, "remote_addr", LOG_FIELD_CLIENT},
    {caddy_request, "method", LOG_FIELD_METHOD},
    {caddy_request, "uri", LOG_FIELD_TARGET},
    {caddy_request, "host", LOG_FIELD_HOST},
    {caddy_request, caddy_headers, LOG_FIELD_OBJECT},
    {caddy_headers, "User-Agent", LOG_FIELD_UA},
    {caddy_headers, "Referer", LOG_FIELD_REFERRER},
};

static const struct log_member traefik[] = {
    {NULL, "StartUTC", LOG_FIELD_TIME},
    {NULL, "StartLocal", LOG_FIELD_TIME},
    {NULL, "time", LOG_FIELD_TIME},
    {NULL, "ClientHost", LOG_FIELD_CLIENT},
    {NULL, "ClientAddr", LOG_FIELD_CLIENT},
    {NULL, "RequestMethod", LOG_FIELD_METHOD},
    {NULL, "RequestPath", LOG_FIELD_TARGET},
    {NULL, "RequestHost", LOG_FIELD_HOST},
    {NULL, "RequestAddr", LOG_FIELD_HOST},
    {NULL, "DownstreamStatus", LOG_FIELD_STATUS},
    {NULL, "request_User-Agent", LOG_FIELD_UA},
    {NULL, "request_Referer", LOG_FIELD_REFERRER},
};

static const struct log_member cloudflare[] = {
    {NULL, "EdgeStartTimestamp", LOG_FIELD_TIME},
    {NULL, "EdgeEndTimestamp", LOG_FIELD_TIME},
    {NULL, "ClientIP", LOG_FIELD_CLIENT},
    {NULL, "ClientRequestMethod", LOG_FIELD_METHOD},
    {NULL, "ClientRequestURI", LOG_FIELD_TARGET},
    {NULL, "ClientRequestPath", LOG_FIELD_PATH},
    {NULL, "ClientRequestHost", LOG_FIELD_HOST},
    {NULL, "EdgeResponseStatus", LOG_FIELD_STATUS},
    {NULL, "ClientRequestUserAgent", LOG_FIELD_UA},
    {NULL, "ClientRequestReferer", LOG_FIELD_REFERRER},
};

const struct log_table json_log_caddy = {caddy, sizeof(caddy) / sizeof(caddy[0])};
const struct log_table json_log_traefik = {traefik, sizeof(traefik) / sizeof(traefik[0])};
const struct log_table json_log_cloudflare = {
    cloudflare, sizeof(cloudflare) / sizeof(cloudflare[0])};

struct json_log {
    struct json_scan scan;
    const struct log_table *table;
    struct log_fields fields;
};

/* Take a text or a number.  *ret_text is untouched if the value is of another kind. */
static bool take_scalar(struct json_scan *scan, struct slice *ret_text)
{
    struct json_value value;
    if (!json_value_read(scan, &value)) {
        return false;
    }
    if (value.kind == SCAN_STRING || value.kind == SCAN_NUMBER) {
        *ret_text = value.kind == SCAN_STRING ? value.text : value.number.text;
    }
    return true;
}

/* Take a text or a number, or the first one in an array. */
static bool take_value(struct json_scan *scan, struct slice *ret_text)
{
    if (json_scan_peek(scan) != SCAN_ARRAY) {
        return take_scalar(scan, ret_text);
    }
    bool is_first = true;
    enum scan_step step = json_scan_open(scan, ']');
    for (; step == SCAN_ITEM; step = json_scan_next(scan, ']')) {
        const char *fault = scan->fault;
        if (!(is_first ? take_scalar(scan, ret_text) : json_scan_skip(scan))) {
            return false;
        }
        scan->fault = is_first ? scan->fault : fault; /* only the first one's fault matters */
        is_first = false;
    }
    return step == SCAN_CLOSED;
}

static bool take_object(struct json_log *log, const char *parent);

/* Take the value of a member; NULL: the table does not have the member.  A text that is unusable
 * matters only in members of the table. */
static bool take_member(struct json_log *log, const struct log_member *member)
{
    bool is_object = json_scan_peek(&log->scan) == SCAN_OBJECT;
    if (member != NULL && member->field == LOG_FIELD_OBJECT && is_object) {
        return take_object(log, member->name);
    }
    if (member == NULL || member->field == LOG_FIELD_OBJECT) {
        bool skipped = json_scan_skip(&log->scan);
        log->scan.fault = NULL;
        return skipped;
    }
    struct slice text = {0};
    if (!take_value(&log->scan, &text)) {
        return false;
    }
    if (log->scan.fault != NULL && member->field == LOG_FIELD_REFERRER) {
        log->scan.fault = NULL; /* no page view is lost because of its referrer */
        return true;
    }
    if (log->scan.fault != NULL) {
        return json_scan_fail(&log->scan, log->scan.fault);
    }
    if (text.p != NULL) {
        log_fields_put(&log->fields, log->table, member, text);
    }
    return true;
}

/* Take an object, whose members are those of @parent in the table.  The table bounds the depth. */
static bool take_object(struct json_log *log, const char *parent)
{
    enum scan_step step = json_scan_open(&log->scan, '}');
    for (; step == SCAN_ITEM; step = json_scan_next(&log->scan, '}')) {
        struct slice name;
        if (!json_scan_name(&log->scan, &name) ||
            !take_member(log, log_table_find(log->table, parent, name))) {
            return false;
        }
    }
    return step == SCAN_CLOSED;
}

/* Read a line into log->fields.  NULL, or what is wrong. */
static const char *scan_line(struct json_log *log, char *text, size_t n)
{
    json_scan_init(&log->scan, text, n, DEPTH_MAX);
    if (json_scan_peek(&log->scan) != SCAN_OBJECT) {
        return "not a JSON object";
    }
    if (!take_object(log, NULL) || !json_scan_finish(&log->scan)) {
        return log->scan.error;
    }
    return NULL;
}

const char *json_log_parse(
    const struct log_table *table, char *text, size_t n, struct log_line *ret)
{
    struct json_log log = {.table = table};
    const char *fault = scan_line(&log, text, n);
    return fault != NULL ? fault : log_fields_read(&log.fields, ret);
}

bool json_log_is_event(char *text, size_t n)
{
    struct json_scan scan;
    json_scan_init(&scan, text, n, DEPTH_MAX);
    if (json_scan_peek(&scan) != SCAN_OBJECT) {
        return false;
    }
    enum scan_step step = json_scan_open(&scan, '}');
    for (; step == SCAN_ITEM; step = json_scan_next(&scan, '}')) {
        struct slice name;
        if (!json_scan_name(&scan, &name)) {
            return false;
        }
        if (slice_equal(name, SLICE("page")) || slice_equal(name, SLICE("event")) ||
            slice_equal(name, SLICE("actions"))) {
            return true;
        }
        if (!json_scan_skip(&scan)) {
            return false;
        }
    }
    return false;
}
