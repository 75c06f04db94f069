/* event_json.h - bytes of a POST /events body to validated events.
 *
 * Layer: handlers, pure (no I/O, no clock).  Thread-safe.  A strict pull decoder of RFC 8259: one
 * pass, no tree, strings are unescaped in place, so events point into the body.
 *
 * Three kinds of bad input have three ends.  What is not JSON spoils the body (or the line, in
 * NDJSON).  A bad event is rejected alone: a member that breaks a rule or is given twice, text that
 * is no UTF-8 (or holds U+0000 or half a surrogate pair) anywhere in it, or something that is no
 * object.  A member that is not known is ignored, whatever it holds.
 */
#ifndef HANDLERS_INGEST_EVENT_JSON_H
#define HANDLERS_INGEST_EVENT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/job/event.h"

/* Containers in each other, counted from the body's (in NDJSON: the line's) outermost one.  Deeper
 * nesting is treated as malformed. */
#define EVENT_DEPTH_MAX      32
#define EVENT_REJECTS_LISTED 100
#define EVENT_POINTER_SIZE   80
#define EVENT_DETAIL_SIZE    96

enum event_body { EVENT_BODY_JSON, EVENT_BODY_NDJSON };

/* What decides whether an event is acceptable. */
struct event_rules {
    int64_t now_s;     /* time of arrival: an event without ts gets it, unchecked */
    int64_t latest_s;  /* ts after this is rejected */
    int64_t oldest_s;  /* ts before this is rejected; INT64_MIN: nothing is too old */
    size_t max_events; /* accepted and rejected together */
};

/* The first thing that was found wrong with one event. */
struct event_reject {
    size_t index; /* of the event; for NDJSON the line's number from 0, blank lines counted */
    char pointer[EVENT_POINTER_SIZE]; /* JSON pointer into the event: "/page"; "" the event as a
                                         whole.  May hold the name of a member as it was sent */
    char detail[EVENT_DETAIL_SIZE];   /* never contains input */
};

/* Owned by the caller: event_batch_init, event_batch_release.  Whatever decode returned but
 * EVENT_JSON_OK, the counts are 0. */
struct event_batch {
    struct event *events; /* accepted ones, in order; owned; slices point into the body */
    size_t n, capacity;
    struct slice *actions; /* those of all events, one behind the other; owned */
    size_t n_actions, actions_capacity;
    size_t rejected;              /* exact */
    struct event_reject *rejects; /* the first EVENT_REJECTS_LISTED; owned */
    size_t n_rejects;
    /* After EVENT_JSON_MALFORMED. */
    size_t line, column; /* from 1; column counts bytes */
    const char *detail;  /* static */
};

enum event_json_result {
    EVENT_JSON_OK,        /* also if every event was rejected, and for [] */
    EVENT_JSON_MALFORMED, /* not JSON (never for NDJSON lines: those are rejects), neither an object
                             nor an array, only blanks, a byte order mark */
    EVENT_JSON_TOO_MANY,  /* more than rules.max_events events; what follows them was not read */
    EVENT_JSON_NOMEM,
};

void event_batch_init(struct event_batch *batch);

/* Back to the state after event_batch_init. */
void event_batch_release(struct event_batch *batch);

/* Decode @body (@n bytes; changed in place; NULL if @n is 0).  @batch must be freshly initialised
 * or released; release it whatever the result. */
enum event_json_result event_json_decode(char *body, size_t n, enum event_body form,
    const struct event_rules *rules, struct event_batch *batch);

#endif
