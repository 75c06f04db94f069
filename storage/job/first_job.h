/* first_job.h - which actions of a request were the first of their user's day: question and answer.
 *
 * Layer: storage, public: plain values.
 *
 * A user may do an action many times a day, and one event is the first of them: the one that set
 * the user's bit (users_job.h).  A request that wants to know which of its actions were first gives
 * its events a ticket.  Where an event is first, the fold that sets the bit notes under the ticket
 * which event that was, in the same step.  So the answer is read, not guessed:
 *
 *   STORAGE_WRITE  with a ticket: the events are appended as those that ask
 *   STORAGE_FIRST  waits until they are counted, and reads what was noted under the ticket
 *
 * Where Redis can go back when it crashes, STORAGE_FIRST also waits until the fold cannot be lost.
 * So no two requests are ever told that they were first.
 */
#ifndef STORAGE_JOB_FIRST_JOB_H
#define STORAGE_JOB_FIRST_JOB_H

#include <stddef.h>
#include <stdint.h>

#include "storage/base/arena.h"
#include "storage/job/event.h"
#include "storage/job/request_key.h"

/* The ticket of a request.  With a key the ticket is a digest of key and body, so a repeat of the
 * request has the same ticket.  @key NULL: the ticket is random, and no other request has it. */
struct key_digest first_ticket(const struct request_key *key);

/* Does @event ask, in a request with a ticket?  It has a user, and an action other than `active`.
 */
bool first_event_asks(const struct event *event);

/* An event of the request, and which of its actions were first. */
struct first_event {
    uint32_t index;              /* event->index */
    uint8_t n_actions;           /* at least one */
    const struct slice *actions; /* in the order in which the event has them */
};

/* Input and result of STORAGE_FIRST.  storage_job_release() frees the arena. */
struct first_job {
    struct key_digest ticket;
    /* The n events of the request.  NULL: the request was sent before, and its events are not at
     * hand, which takes a little longer. */
    const struct event *events;
    size_t n;

    /* Written by storage. */
    const struct first_event *found; /* n_found of them, in the order of their index */
    size_t n_found;
    struct arena arena; /* holds what was found */

    /* Private to storage. */
    struct slice text; /* the notes under the ticket, as last read; in the arena */
};

#endif
