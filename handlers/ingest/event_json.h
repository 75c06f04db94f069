/* event_json.h - the body of POST /events, decoded and checked.
 *
 * Layer: handlers, pure (no I/O, no clock).  Thread-safe.
 *
 * A strict pull decoder of RFC 8259: one pass, no tree.  Strings are unescaped in place, so the
 * events point into the body.
 *
 *     what is wrong                                        what becomes of it
 *     the text is no JSON                                  the whole body is malformed
 *     a line of NDJSON is no JSON                          the line is rejected, alone
 *     a member breaks a rule, or is given twice            the event is rejected, alone
 *     text that is no UTF-8, U+0000, half a surrogate      the event is rejected, alone
 *       pair, in any member
 *     an event is no object                                the event is rejected, alone
 *     none of page, event and actions is there             the event is rejected, alone
 *     a member that is not known                           nothing: it is ignored
 *
 * A valid event that is not to be counted is dropped: see event_rules.h.
 */
#ifndef HANDLERS_INGEST_EVENT_JSON_H
#define HANDLERS_INGEST_EVENT_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "handlers/ingest/event_rules.h"
#include "storage/base/arena.h"
#include "storage/base/compiler.h"
#include "storage/job/event.h"

/* How many arrays and objects may lie in each other, from the outermost one of the body (in NDJSON:
 * of the line) on.  Deeper nesting is treated as malformed. */
#define EVENT_DEPTH_MAX 32

#define EVENT_REJECTS_LISTED 100 /* rejects of one body that are listed, at most */
#define EVENT_DROPS_LISTED   100 /* dropped events of one body that are listed, at most */

enum event_body { EVENT_BODY_JSON, EVENT_BODY_NDJSON };

/* What became of a body.  A zeroed struct is empty.  Arrays are owned by the batch; the slices of
 * its events point into the body.  After any other result than EVENT_JSON_OK the counts are 0. */
struct event_batch {
    struct event *events; /* n accepted events, in the order of the body */
    size_t n, capacity;
    struct slice *actions; /* the actions of all events, in the order of the events */
    size_t n_actions, actions_capacity;
    struct arena arena;           /* has the texts of dimensions */
    size_t rejected;              /* how many events were rejected, exactly */
    struct event_reject *rejects; /* the first EVENT_REJECTS_LISTED of them */
    size_t n_rejects;
    bool untimed;             /* an event has no ts, and rules->needs_time */
    size_t dropped;           /* how many valid events are not counted, exactly */
    struct event_drop *drops; /* the first EVENT_DROPS_LISTED of them */
    size_t n_drops;
    size_t dropped_robots; /* how many of the dropped events are those of robots */
    struct slice foreign;  /* a site of dropped events that the sender may not write to; or empty */
    /* Where and why the body is malformed, after EVENT_JSON_MALFORMED. */
    size_t line, column; /* from 1; column counts bytes */
    const char *detail;  /* static */
};

enum event_json_result {
    EVENT_JSON_OK,        /* also if every event was rejected, and for [] */
    EVENT_JSON_MALFORMED, /* no JSON, neither an object nor an array, only blanks, or a byte order
                             mark in front.  (A line of NDJSON that is no JSON is a reject) */
    EVENT_JSON_TOO_MANY,  /* more than rules->max_events events; what follows was not read */
    EVENT_JSON_NOMEM,
};

/* Free the events, and what they point to.  The numbers and the lists of rejects and drops stay. */
void event_batch_forget(struct event_batch *batch);

/* Free the arrays, and make the batch empty. */
void event_batch_release(struct event_batch *batch);

/* Decode @n bytes of @body, which are changed in place; @body may be NULL if @n is 0.  @batch is
 * empty.  Release @batch whatever the result. */
enum event_json_result event_json_decode(char *body, size_t n, enum event_body form,
    const struct event_rules *rules, struct event_batch *batch) MUST_CHECK;

#endif
