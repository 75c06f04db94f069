#include "handlers/ingest/event_members.h"

#include "handlers/access/declared_site.h"
#include "handlers/dimension/language.h"
#include "handlers/ingest/event_names.h"
#include "handlers/text/check.h"
#include "handlers/text/json_value.h"
#include "handlers/text/timestamp.h"
#include "storage/job/counted_name.h"
#include "storage/time/bucket.h"

#include <stdio.h>

static void refuse(struct event_reader *reader, const char *pointer, const char *detail)
{
    reader->detail = detail;
    snprintf(reader->pointer, sizeof(reader->pointer), "%s", pointer);
}

/* Refuse for the member @name, whatever it is called.  A name that is too long for a pointer is not
 * told. */
static void refuse_named(struct event_reader *reader, struct slice name, const char *detail)
{
    char pointer[EVENT_POINTER_SIZE] = "/";
    size_t n = 1;
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        if (n + 3 > sizeof(pointer)) {
            refuse(reader, "", detail);
            return;
        }
        if (c == '~' || c == '/') {
            pointer[n++] = '~';
        }
        pointer[n++] = c == '~' ? '0' : c == '/' ? '1' : c;
    }
    pointer[n] = 0;
    refuse(reader, pointer, detail);
}

/* Make *to the text in @value, which must pass @check.  @no_text says what is wrong with a value
 * that is no text.  Returns what is wrong, or NULL. */
static inline const char *set_text(struct slice *to, const struct json_value *value,
    const char *no_text, const char *(*check)(struct slice text))
{
    if (value->kind != SCAN_STRING) {
        return no_text;
    }
    *to = value->text;
    return check(value->text);
}

/* Do as set_text() does, but leave *to as it is if the value is null, which means no member. */
static inline const char *set_text_or_null(struct slice *to, const struct json_value *value,
    const char *no_text, const char *(*check)(struct slice text))
{
    return value->kind == SCAN_NULL ? NULL : set_text(to, value, no_text, check);
}

static const char *set_event(struct event_reader *reader, const struct json_value *value)
{
    if (value->kind != SCAN_STRING) {
        return "event must be a string";
    }
    const char *detail = event_check_name(value->text);
    if (detail == NULL) {
        reader->name = event_name_mark_before(value->text);
    }
    return detail;
}

static const char *set_ip(struct event *event, const struct json_value *value)
{
    if (value->kind != SCAN_STRING) {
        return "ip must be a string";
    }
    return event_parse_address(value->text, &event->address);
}

static const char *set_value(struct slice *to, const struct json_value *value)
{
    return set_text_or_null(to, value, "must be a string or null", event_check_value);
}

static const char *set_country(struct slice *to, const struct json_value *value)
{
    char code[COUNTRY_SIZE];
    struct slice ignored;
    const char *detail = set_value(to, value);
    bool ok = detail == NULL && (to->n == 0 || country_read(*to, code, &ignored));
    return ok ? NULL : "country must be two letters, a code of ISO 3166-1, or null";
}

static const char *set_time(struct event_reader *reader, const struct json_value *value)
{
    int64_t at_s = 0;
    if (value->kind == SCAN_STRING) {
        if (!timestamp_rfc3339(value->text, &at_s)) {
            return "ts as a string must be RFC 3339 with an offset";
        }
    } else if (value->kind == SCAN_NUMBER) {
        if (value->number.negative) {
            return "ts must not be negative";
        }
        at_s = timestamp_from_number(json_number_cut(&value->number));
    } else {
        return "ts must be a number or a string in RFC 3339";
    }
    reader->event->at_s = at_s;
    return event_check_time(at_s, reader->rules->oldest_s, reader->rules->latest_s);
}

static const char *set_member(
    struct event_reader *reader, enum member member, const struct json_value *value)
{
    struct event *event = reader->event;
    struct view_traits *traits = &reader->traits;
    switch (member) {
    case MEMBER_PAGE:
        return set_text(&event->page, value, "page must be a string", event_check_page);
    case MEMBER_USER:
        return json_value_user(value, &event->user);
    case MEMBER_SITE:
        return set_text(&event->site, value, "site must be a string", event_check_site);
    case MEMBER_IP:
        return set_ip(event, value);
    case MEMBER_UA:
        return set_text_or_null(
            &event->agent, value, "ua must be a string or null", event_check_agent);
    case MEMBER_TS:
        return set_time(reader, value);
    case MEMBER_REFERRER:
        return set_text_or_null(
            &traits->referrer, value, "referrer must be a string or null", event_check_referrer);
    case MEMBER_COUNTRY:
        return set_country(&traits->country, value);
    case MEMBER_LANGUAGE:
        return set_value(&traits->language, value);
    case MEMBER_PROPS: /* an object would have gone to read_props() */
        return value->kind == SCAN_NULL ? NULL : "props must be an object or null";
    case MEMBER_ACTIONS: /* an array would have gone to read_actions() */
        return "actions must be an array";
    case MEMBER_EVENT:
        return set_event(reader, value);
    case MEMBER_VISITOR:
        return set_text(&event->visitor, value, "visitor must be a string", event_check_visitor);
    case MEMBER_UTM:
    case MEMBER_UNKNOWN:
        break;
    }
    return set_value(&traits->utm[member - MEMBER_UTM], value);
}

static bool read_action(struct event_reader *reader, unsigned index)
{
    if (index == EVENT_ACTIONS_MAX) {
        refuse(reader, "/actions", "actions must be at most 8");
        return json_scan_skip(reader->scan);
    }
    struct json_value value;
    if (!json_value_read(reader->scan, &value)) {
        return false;
    }
    if (reader->scan->fault != NULL) {
        refuse(reader, "/actions", reader->scan->fault);
        return true;
    }
    const char *detail =
        value.kind != SCAN_STRING ? "an action must be a string" : event_check_action(value.text);
    if (detail != NULL) {
        char pointer[sizeof("/actions/0")];
        snprintf(pointer, sizeof(pointer), "/actions/%c", (char)('0' + index));
        refuse(reader, pointer, detail);
        return true;
    }
    reader->actions[index] = value.text;
    reader->event->n_actions = (uint8_t)(index + 1);
    return true;
}

static bool read_actions(struct event_reader *reader)
{
    enum scan_step step = json_scan_open(reader->scan, ']');
    for (unsigned i = 0; step == SCAN_ITEM; step = json_scan_next(reader->scan, ']'), i++) {
        bool ok = reader->detail == NULL ? read_action(reader, i) : json_scan_skip(reader->scan);
        if (!ok) {
            return false;
        }
    }
    return step == SCAN_CLOSED;
}

/* The value of a property as a text; empty if it cannot be a value. */
static struct slice prop_text(const struct json_value *value)
{
    struct slice text = value->kind == SCAN_TRUE     ? SLICE("true")
                        : value->kind == SCAN_FALSE  ? SLICE("false")
                        : value->kind == SCAN_NUMBER ? value->number.text
                        : value->kind == SCAN_STRING ? value->text
                                                     : SLICE("");
    return event_check_value(text) == NULL ? text : SLICE("");
}

/* Read one property.  It is not known yet which properties the site counts by.  What cannot be a
 * value is ignored, like properties that the site does not count by. */
static bool read_prop(struct event_reader *reader)
{
    struct slice name;
    struct json_value value;
    if (!json_scan_name(reader->scan, &name) || !json_value_read(reader->scan, &value)) {
        return false;
    }
    if (reader->scan->fault != NULL) {
        refuse(reader, "/props", reader->scan->fault);
        return true;
    }
    struct slice text = prop_text(&value);
    if (text.n > 0 && reader->traits.n_props < EVENT_PROPS_READ) {
        reader->props[reader->traits.n_props++] = (struct view_prop){name, text};
    }
    return true;
}

static bool read_props(struct event_reader *reader)
{
    enum scan_step step = json_scan_open(reader->scan, '}');
    for (; step == SCAN_ITEM; step = json_scan_next(reader->scan, '}')) {
        if (!read_prop(reader)) {
            return false;
        }
    }
    return step == SCAN_CLOSED;
}

static bool read_known(struct event_reader *reader, enum member member)
{
    if (member == MEMBER_PROPS && json_scan_peek(reader->scan) == SCAN_OBJECT) {
        return read_props(reader);
    }
    if (member == MEMBER_ACTIONS && json_scan_peek(reader->scan) == SCAN_ARRAY) {
        return read_actions(reader);
    }
    struct json_value value;
    if (!json_value_read(reader->scan, &value)) {
        return false;
    }
    const char *detail = reader->scan->fault;
    if (detail == NULL) {
        detail = set_member(reader, member, &value);
    }
    if (detail != NULL) {
        refuse(reader, event_member_pointer(member), detail);
    }
    return true;
}

static bool read_unknown(struct event_reader *reader, struct slice name)
{
    if (!json_scan_skip(reader->scan)) {
        return false;
    }
    if (reader->scan->fault != NULL) {
        refuse_named(reader, name, reader->scan->fault);
    }
    return true;
}

static bool read_member(struct event_reader *reader)
{
    struct json_scan *scan = reader->scan;
    struct slice name;
    if (!json_scan_name(scan, &name)) {
        return false;
    }
    if (reader->detail == NULL && scan->fault != NULL) {
        refuse(reader, "", scan->fault);
    }
    enum member member = event_member_find(name);
    if (reader->detail != NULL) {
        reader->seen |= 1u << member; /* check_whole() wants to know if there is a ts */
        return json_scan_skip(scan);
    }
    if (member == MEMBER_UNKNOWN) {
        return read_unknown(reader, name);
    }
    if ((reader->seen & 1u << member) != 0) {
        refuse(reader, event_member_pointer(member), "the member is given twice");
        return json_scan_skip(scan);
    }
    reader->seen |= 1u << member;
    return read_known(reader, member);
}

static bool read_members(struct event_reader *reader)
{
    enum scan_step step = json_scan_open(reader->scan, '}');
    for (; step == SCAN_ITEM; step = json_scan_next(reader->scan, '}')) {
        if (!read_member(reader)) {
            return false;
        }
    }
    return step == SCAN_CLOSED;
}

/* Is the event's day, by its site's zone, no longer kept? */
static bool is_old_day(const struct event_reader *reader)
{
    const struct event_rules *rules = reader->rules;
    const struct event *event = reader->event;
    return event->at_s < rules->days_from_s &&
           bucket_at(rules->zone_of(rules->app->storage, event->site), LEVEL_DAY, event->at_s)
                   .end_s <= rules->days_from_s;
}

/* Find out what the event is (storage/job/event.h): a page view, a named event, or activity of a
 * user.  Refuses an event that is none of these. */
static void check_kind(struct event_reader *reader)
{
    struct event *event = reader->event;
    if ((reader->seen & 1u << MEMBER_EVENT) != 0) {
        event->page = reader->name;
    } else if (event->page.n == 0 && event->n_actions == 0) {
        refuse(reader, "/page", "one of page, event and actions is required");
    } else if (event->page.n == 0 && event->user.n == 0) {
        refuse(reader, "/user", "user is required where actions stand without page and event");
    } else if (event->page.n == 0 && is_old_day(reader)) {
        refuse(reader, "/ts", "ts is older than the days that are kept, and actions count by day");
    }
}

/* Check the rules that can be judged only when all members were read. */
static void check_whole(struct event_reader *reader)
{
    const struct event_rules *rules = reader->rules;
    reader->untimed = rules->needs_time && (reader->seen & 1u << MEMBER_TS) == 0;
    if (reader->detail != NULL) {
        return;
    }
    check_kind(reader);
    if (reader->detail != NULL) {
        return;
    }
    if (reader->untimed) {
        refuse(reader, "/ts", "ts is required with dedupe=body");
    } else if (rules->app != NULL && !declared_site_takes(rules->app, reader->event->site)) {
        refuse(reader, "/site", DECLARED_SITE_DETAIL);
    }
}

bool event_read(struct event_reader *reader)
{
    *reader->event = (struct event){
        .at_s = reader->rules->now_s,
        .site = EVENT_SITE_DEFAULT,
    };
    reader->traits = (struct view_traits){.props = reader->props};
    reader->seen = 0;
    reader->untimed = false;
    reader->detail = NULL;
    reader->scan->fault = NULL;
    if (json_scan_peek(reader->scan) != SCAN_OBJECT) {
        refuse(reader, "", "an event must be an object");
        return json_scan_skip(reader->scan);
    }
    if (!read_members(reader)) {
        return false;
    }
    check_whole(reader);
    return true;
}
