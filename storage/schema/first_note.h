/* first_note.h - what is noted under a ticket: events that were the first of their user's day.
 *
 * Layer: storage, pure.  Thread-safe: no state.
 *
 * The string t:{p}:first:<ticket> has a line for each event of the request whose user lies in
 * partition p, and that was first (job/first_job.h):
 *
 *     <index> <action> <action>\n
 *
 * An index is decimal, and no action has a blank.  No user, page or time stands in it.  A line is
 * appended in the transaction that counts the event, so it is there once.
 */
#ifndef STORAGE_SCHEMA_FIRST_NOTE_H
#define STORAGE_SCHEMA_FIRST_NOTE_H

#include "storage/base/buffer.h"
#include "storage/base/compiler.h"
#include "storage/job/first_job.h"

/* How long a note lives, from its last line on.  A request with a key may be repeated, and gets the
 * same answer for 48 hours, and an hour more for clocks that go apart.  The record of its key lives
 * as long (log/record.h): if the request were counted again before, its events could be the first
 * of another day, and the note would name both.  A request without a key reads its note once,
 * within --request-timeout. */
#define FIRST_NOTE_KEYED_MS INT64_C(176400000)
#define FIRST_NOTE_PLAIN_MS INT64_C(7200000)

/* Append the line of an event to @out. */
void first_note_put(
    struct buffer *out, uint32_t index, const struct slice *actions, unsigned n_actions);

/* Take the first line off *text.  ret->actions is @actions, whose slices point into *text.  False,
 * with *text untouched: *text is empty, or does not begin with a line of a note. */
bool first_note_next(struct slice *text, struct first_event *ret,
    struct slice actions[static EVENT_ACTIONS_MAX]) MUST_CHECK;

#endif
