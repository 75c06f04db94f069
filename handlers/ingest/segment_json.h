/* segment_json.h - the bodies of Segment's HTTP API, decoded and checked.
 *
 * Layer: handlers, pure (no I/O, no clock).  Thread-safe.
 *
 * A body is one message, or {"batch": [messages]}.  Like event_json.h this is one pass without a
 * tree; strings are unescaped in place, so the events point into the body.  segment_message.h lists
 * the members of a message that are looked at.
 *
 * A page is a page view, and a track is a named event (storage/job/counted_name.h).  All other
 * types are valid, and nothing of them is counted.
 *
 * Beside the messages a body may have `writeKey`: the SDKs for Node (from 2.0 on) and Python send
 * their token there, and no Authorization.
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

/* The last part of the path says what a body is. */
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

/* The call that @name stands for, also as a message's type. */
enum segment_call segment_call_of(struct slice name) MUST_CHECK;

/* The call of a path's last part: a name, or its first letter alone, which is what the SDKs for
 * browsers (`/v1/p`) and for Kotlin (`/v1/b`) ask for. */
enum segment_call segment_call_of_path(struct slice part) MUST_CHECK;

/* What became of a body.  Release with segment_body_release(). */
struct segment_body {
    struct arena arena;   /* values of dimensions */
    struct event *events; /* n to be counted, in order; owned, their slices point into the body */
    size_t n, capacity;
    struct segment_traits *traits; /* owned: n, of the events */
    size_t traits_capacity;
    size_t n_messages;
    size_t uncounted;      /* valid messages that are neither pages nor tracks */
    size_t dropped_robots; /* events that are not to be counted: see event_rules.h */
    size_t dropped_ignored;
    size_t rejected;        /* messages that break a rule */
    size_t fault_index;     /* of the first of these, */
    const char *fault_at;   /* the member at fault, as "context.ip", */
    const char *fault;      /* and what is wrong; both static */
    struct slice write_key; /* empty: none */
    struct buffer ids;      /* the messageIds, a NUL behind each; owned */
    bool all_have_ids;
    /* Where and why, after SEGMENT_MALFORMED. */
    size_t line, column; /* from 1; column counts bytes */
    const char *detail;  /* static */
};

enum segment_result {
    SEGMENT_OK,        /* also if messages were rejected */
    SEGMENT_MALFORMED, /* no JSON, no object, or no array `batch` */
    SEGMENT_TOO_MANY,  /* more than rules->max_events messages */
    SEGMENT_NOMEM,
};

/* Decode @n bytes of @body, which are changed in place.  The events get no site: which one they are
 * for may depend on the write key.  So nothing asks here whether the site is taken.  @ret is
 * overwritten; release it whatever the result. */
enum segment_result segment_decode(char *body, size_t n, enum segment_call call,
    const struct event_rules *rules, struct segment_body *ret) MUST_CHECK;

void segment_body_release(struct segment_body *body);

#endif
