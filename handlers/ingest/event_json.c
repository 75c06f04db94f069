#include "handlers/ingest/event_json.h"

#include "handlers/dimension/derive.h"
#include "handlers/ingest/event_members.h"
#include "storage/base/index.h"

#include <stdio.h>
#include <stdlib.h>

#define BYTE_ORDER_MARK SLICE("\xef\xbb\xbf")

/* About how many bytes an event of a web backend takes.  The first array has room for a body that
 * is full of such events. */
#define TYPICAL_EVENT_BYTES 128

struct decoder {
    struct event_batch *batch;
    const struct event_rules *rules;
    size_t n_expected; /* the first array has room for so many events */
    struct json_scan scan;
    struct event_reader reader;
};

void event_batch_forget(struct event_batch *batch)
{
    free(batch->events);
    free(batch->actions);
    arena_release(&batch->arena);
    batch->events = NULL;
    batch->actions = NULL;
    batch->capacity = batch->n_actions = batch->actions_capacity = 0;
}

void event_batch_release(struct event_batch *batch)
{
    event_batch_forget(batch);
    free(batch->rejects);
    free(batch->drops);
    *batch = (struct event_batch){0};
}

/* Make room for one event more; there are fewer than max_events so far. */
static bool reserve_event(struct decoder *d)
{
    struct event_batch *batch = d->batch;
    if (batch->n < batch->capacity) {
        return true;
    }
    size_t capacity = batch->capacity == 0 ? d->n_expected : batch->capacity * 2;
    if (capacity > d->rules->max_events) {
        capacity = d->rules->max_events;
    }
    struct event *events = reallocarray(batch->events, capacity, sizeof(*events));
    if (events == NULL) {
        return false;
    }
    batch->events = events;
    batch->capacity = capacity;
    return true;
}

/* Keep the event and its actions.  attach_actions() sets the pointer to them later, because the
 * array may still move. */
static enum event_json_result accept_event(struct decoder *d, size_t index)
{
    struct event_batch *batch = d->batch;
    size_t n = d->reader.event->n_actions;
    d->reader.event->index = (uint32_t)index;
    for (size_t i = 0; i < n; i++) {
        if (!ARRAY_RESERVE(batch, actions)) {
            return EVENT_JSON_NOMEM;
        }
        batch->actions[batch->n_actions++] = d->reader.actions[i];
    }
    batch->n++;
    return EVENT_JSON_OK;
}

static void attach_actions(struct event_batch *batch)
{
    if (batch->n_actions == 0) {
        return;
    }
    const struct slice *next = batch->actions;
    for (size_t i = 0; i < batch->n; i++) {
        if (batch->events[i].n_actions == 0) {
            continue;
        }
        batch->events[i].actions = next;
        next += batch->events[i].n_actions;
    }
}

/* Count an event as rejected.  *ret_reject is its place in the list; NULL: the list is full. */
static enum event_json_result reject(
    struct event_batch *batch, size_t index, struct event_reject **ret_reject)
{
    *ret_reject = NULL;
    if (batch->rejects == NULL) {
        batch->rejects = calloc(EVENT_REJECTS_LISTED, sizeof(*batch->rejects));
        if (batch->rejects == NULL) {
            return EVENT_JSON_NOMEM;
        }
    }
    batch->rejected++;
    if (batch->n_rejects < EVENT_REJECTS_LISTED) {
        *ret_reject = &batch->rejects[batch->n_rejects++];
        (*ret_reject)->index = index;
    }
    return EVENT_JSON_OK;
}

static enum event_json_result reject_event(struct decoder *d, size_t index)
{
    struct event_reject *told;
    enum event_json_result result = reject(d->batch, index, &told);
    if (told != NULL) {
        memcpy(told->pointer, d->reader.pointer, sizeof(told->pointer));
        snprintf(told->detail, sizeof(told->detail), "%s", d->reader.detail);
    }
    return result;
}

static enum event_json_result reject_line(struct decoder *d, size_t index)
{
    struct event_reject *told;
    enum event_json_result result = reject(d->batch, index, &told);
    if (told != NULL) {
        size_t line, column;
        json_scan_position(&d->scan, &line, &column);
        snprintf(told->detail, sizeof(told->detail), "malformed JSON at column %zu: %s", column,
            d->scan.error);
    }
    return result;
}

static enum event_json_result drop_event(
    struct event_batch *batch, size_t index, enum drop_reason reason)
{
    if (batch->drops == NULL) {
        batch->drops = calloc(EVENT_DROPS_LISTED, sizeof(*batch->drops));
        if (batch->drops == NULL) {
            return EVENT_JSON_NOMEM;
        }
    }
    batch->dropped++;
    batch->dropped_robots += reason == DROP_ROBOT;
    if (batch->n_drops < EVENT_DROPS_LISTED) {
        batch->drops[batch->n_drops++] = (struct event_drop){index, reason};
    }
    return EVENT_JSON_OK;
}

static enum event_json_result begin_event(struct decoder *d)
{
    if (d->batch->n + d->batch->rejected + d->batch->dropped >= d->rules->max_events) {
        return EVENT_JSON_TOO_MANY;
    }
    if (!reserve_event(d)) {
        return EVENT_JSON_NOMEM;
    }
    d->reader.event = &d->batch->events[d->batch->n];
    return EVENT_JSON_OK;
}

static enum event_json_result end_event(struct decoder *d, size_t index)
{
    d->batch->untimed = d->batch->untimed || d->reader.untimed;
    if (d->reader.detail != NULL) {
        return reject_event(d, index);
    }
    enum drop_reason reason = event_drop_reason(d->rules, d->reader.event);
    if (reason == DROP_NOT) {
        bool ok = d->rules->app == NULL ||
                  derive_view(d->rules->app, &d->reader.traits, d->reader.event, &d->batch->arena);
        return ok ? accept_event(d, index) : EVENT_JSON_NOMEM;
    }
    struct slice site = d->reader.event->site;
    if (d->batch->foreign.n == 0 && d->rules->may_write != NULL &&
        !d->rules->may_write(d->rules->sender, site)) {
        d->batch->foreign = site;
    }
    return drop_event(d->batch, index, reason);
}

static enum event_json_result decode_event(struct decoder *d, size_t index)
{
    enum event_json_result result = begin_event(d);
    if (result != EVENT_JSON_OK) {
        return result;
    }
    return event_read(&d->reader) ? end_event(d, index) : EVENT_JSON_MALFORMED;
}

static enum event_json_result decode_array(struct decoder *d)
{
    enum scan_step step = json_scan_open(&d->scan, ']');
    for (size_t i = 0; step == SCAN_ITEM; step = json_scan_next(&d->scan, ']'), i++) {
        enum event_json_result result = decode_event(d, i);
        if (result != EVENT_JSON_OK) {
            return result;
        }
    }
    return step == SCAN_CLOSED ? EVENT_JSON_OK : EVENT_JSON_MALFORMED;
}

static enum event_json_result decode_value(struct decoder *d)
{
    switch (json_scan_peek(&d->scan)) {
    case SCAN_ARRAY:
        return decode_array(d);
    case SCAN_OBJECT:
        return decode_event(d, 0);
    case SCAN_STRING:
    case SCAN_NUMBER:
    case SCAN_TRUE:
    case SCAN_FALSE:
    case SCAN_NULL:
        json_scan_fail(&d->scan, "an object or an array is expected");
        break;
    case SCAN_BAD:
        break;
    }
    return EVENT_JSON_MALFORMED;
}

static enum event_json_result decode_json(struct decoder *d)
{
    if (json_scan_at_end(&d->scan)) {
        json_scan_fail(&d->scan, "the body holds no JSON");
        return EVENT_JSON_MALFORMED;
    }
    enum event_json_result result = decode_value(d);
    if (result == EVENT_JSON_OK && !json_scan_finish(&d->scan)) {
        return EVENT_JSON_MALFORMED;
    }
    return result;
}

/* Decode one line of NDJSON.  An event is accepted only when nothing is left of the line. */
static enum event_json_result decode_line(struct decoder *d, size_t index)
{
    enum event_json_result result = begin_event(d);
    if (result != EVENT_JSON_OK) {
        return result;
    }
    if (!event_read(&d->reader) || !json_scan_finish(&d->scan)) {
        return reject_line(d, index);
    }
    return end_event(d, index);
}

static enum event_json_result decode_lines(struct decoder *d)
{
    char *const end = d->scan.end;
    char *line = d->scan.at;
    bool any = false;
    for (size_t i = 0; line < end; i++) {
        char *stop = memchr(line, '\n', (size_t)(end - line));
        if (stop == NULL) {
            stop = end;
        }
        json_scan_init(&d->scan, line, (size_t)(stop - line), EVENT_DEPTH_MAX);
        line = stop < end ? stop + 1 : end;
        if (json_scan_at_end(&d->scan)) {
            continue;
        }
        any = true;
        enum event_json_result result = decode_line(d, i);
        if (result != EVENT_JSON_OK) {
            return result;
        }
    }
    if (any) {
        return EVENT_JSON_OK;
    }
    json_scan_fail(&d->scan, "the body holds no JSON");
    return EVENT_JSON_MALFORMED;
}

static enum event_json_result decode_body(struct decoder *d, enum event_body form)
{
    struct slice body = {d->scan.at, (size_t)(d->scan.end - d->scan.at)};
    if (slice_begins(body, BYTE_ORDER_MARK)) {
        json_scan_fail(&d->scan, "a byte order mark is not allowed");
        return EVENT_JSON_MALFORMED;
    }
    return form == EVENT_BODY_NDJSON ? decode_lines(d) : decode_json(d);
}

enum event_json_result event_json_decode(char *body, size_t n, enum event_body form,
    const struct event_rules *rules, struct event_batch *batch)
{
    struct decoder d = {
        .batch = batch,
        .rules = rules,
        .n_expected = n / TYPICAL_EVENT_BYTES + 1,
        .reader = {.rules = rules},
    };
    d.reader.scan = &d.scan;
    json_scan_init(&d.scan, body, n, EVENT_DEPTH_MAX);
    enum event_json_result result = decode_body(&d, form);
    if (result == EVENT_JSON_OK) {
        attach_actions(batch);
        return result;
    }
    batch->n = batch->n_actions = batch->n_rejects = batch->rejected = 0;
    batch->n_drops = batch->dropped = batch->dropped_robots = 0;
    if (result == EVENT_JSON_MALFORMED) {
        json_scan_position(&d.scan, &batch->line, &batch->column);
        batch->detail = d.scan.error;
    }
    return result;
}
