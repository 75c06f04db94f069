/* segment_json.h - the bodies of Segment's HTTP API, decoded and checked.
 *
 * Layer: handlers, pure (no I/O, no clock).  Thread-safe.
 *
 * A body is one message, or {"batch": [messages]}.  As in event_json.h the body is read in one pass
 * without a tree.  Strings are unescaped in place, so the events point into the body.
 * segment_message.h lists the members of a message that are looked at.
 *
 * A page is a page view, and a track is a named event (storage/job/counted_name.h).  All other
 * types are valid, and nothing of them is counted.
 *
 * A body may also have `writeKey`: the SDKs for Node (from 2.0 on) and Python send their token
 * there, and no Authorization.
 *
 * Source: Segment's documentation, "HTTP API Source" (read 2026-11-22), and what the official SDKs
 * send: for Node (npm @segment/analytics-node 1.3.0 and 2.2.1), for browsers
 * (segmentio/analytics-next) and for Kotlin (segmentio/analytics-kotlin).
 */
#ifndef HANDLERS_INGEST_SEGMENT_JSON_H
#define HANDLERS_INGEST_SEGMENT_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "handlers/ingest/event_rules.h"
#include "handlers/ingest/segment_message.h"
#include "storage/base/arena.h"
#include "storage/base/buffer.h"
#include "storage/base/compiler.h"
#include "storage/job/event.h"

/* What a body is, which the last part of the path says; also the type of a message. */
enum segment_call {
    SEGMENT_BATCH,
    SEGMENT_PAGE,
    SEGMENT_TRACK,
    SEGMENT_IDENTIFY,
    SEGMENT_ALIAS,
    SEGMENT_GROUP,
    SEGMENT_SCREEN,
    SEGMENT_UNKNOWN,
};

/* The call with the name @name, as "page"; SEGMENT_UNKNOWN: there is none. */
enum segment_call segment_call_of(struct slice name) MUST_CHECK;

/* The call of a path's last part: a name, or its first letter alone, which the SDKs for browsers
 * (`/v1/p`) and for Kotlin (`/v1/b`) use. */
enum segment_call segment_call_of_path(struct slice part) MUST_CHECK;

/* What became of a body.  Release with segment_body_release(). */
struct segment_body {
    struct arena arena;   /* has the texts of dimensions, which the caller finds */
    struct event *events; /* n of them, in order; owned; their slices point into the body */
    size_t n, capacity;
    struct segment_traits *traits; /* owned: n of them, one for each event */
    size_t traits_capacity;
    size_t n_messages;
    size_t uncounted;      /* valid messages that are neither pages nor tracks */
    size_t dropped_robots; /* events that are dropped, by reason: see event_rules.h */
    size_t dropped_ignored;
    size_t rejected;        /* messages that break a rule */
    size_t fault_index;     /* position of the first message that breaks a rule, from 0 */
    const char *fault_at;   /* its member at fault, as "context.ip": static */
    const char *fault;      /* what is wrong with that member: static */
    struct slice write_key; /* empty: none */
    struct buffer ids;      /* the messageIds, a NUL behind each; owned */
    bool all_have_ids;      /* every message has a messageId */
    /* Where and why the body is malformed, after SEGMENT_MALFORMED. */
    size_t line, column; /* from 1; column counts bytes */
    const char *detail;  /* static */
};

enum segment_result {
    SEGMENT_OK,        /* also if messages were rejected */
    SEGMENT_MALFORMED, /* no JSON, no object, or no array `batch` */
    SEGMENT_TOO_MANY,  /* more than rules->max_events messages */
    SEGMENT_NOMEM,
};

/* Decode @n bytes of @body, which are changed in place.  The events get no site, because the site
 * may depend on the write key.  So the caller must check whether the site is taken.  @ret is
 * overwritten; release it whatever the result. */
enum segment_result segment_decode(char *body, size_t n, enum segment_call call,
    const struct event_rules *rules, struct segment_body *ret) MUST_CHECK;

void segment_body_release(struct segment_body *body);

#endif
