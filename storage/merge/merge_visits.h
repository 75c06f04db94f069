/* merge_visits.h - which events begin a visit, and by how much others make a visit grow.
 *
 * Layer: storage, pure.  One owner; scratch memory is kept between uses.
 *
 * A visit begins with an event whose visitor had none in the `timeout` seconds before.  Events are
 * taken in the order of arrival, and:
 *
 *     what is remembered of the visitor          the event, at `t`
 *     nothing, or older than 2 timeouts          begins a visit
 *     the last event was at L, and t > L + timeout  begins a visit
 *     any other                                  begins none, also if t is before L
 *
 * A named event begins no visit, but prolongs an open one: where a page view would begin none, the
 * named event is remembered as that page view would be.  Else the named event is not remembered.
 *
 * The first event that comes to an open visit engages the visit: the visit is no bounce any more.
 * A visit lasts from its first event to its last one, so an event at t > L adds t - L seconds.  An
 * event at t <= L adds none, and one that is older than L - timeout is no part of the visit.
 * These are Plausible's definitions of bounce rate and visit duration,
 * https://plausible.io/docs/metrics-definitions, where custom events engage a visit, too.
 *
 * "Older" goes by the time of arrival.  Redis remembers the last event of each visitor, in hashes
 * that are cut by the time of arrival into slots of two timeouts (schema/key.h).  Use:
 *
 *     merge_visits_ask      each visitor who may come; one too many does no harm
 *     merge_visits_write_questions, merge_visits_take   what Redis remembers of them
 *     merge_visits_add      each event: does it begin a visit?
 *     merge_visits_write    what Redis shall remember
 *
 * Of a visitor who is a user Redis remembers the user's index, too, and the newest day on which the
 * user is known to have been active.  So Redis need not be asked for the user by name, in a hash of
 * all users.  An index holds for one generation of users (known_users.h), and stands beside a hash
 * of that generation.
 */
#ifndef STORAGE_MERGE_MERGE_VISITS_H
#define STORAGE_MERGE_MERGE_VISITS_H

#include "storage/base/buffer.h"
#include "storage/base/compiler.h"
#include "storage/known/known_users.h"
#include "storage/known/known_visitors.h"
#include "storage/redis/reply.h"
#include "storage/schema/hashed_event.h"

struct merge_visits;

/* @timeout_s: a visit ends after so long without an event.  NULL: out of memory. */
struct merge_visits *merge_visits_new(int64_t timeout_s) MUST_CHECK;
void merge_visits_free(struct merge_visits *merge);  /* NULL is harmless */
void merge_visits_clear(struct merge_visits *merge); /* forgets all, and keeps memory */

/* Before any visitor is asked for: @now_s is the time by Redis's clock, UTC.  0, as behind
 * merge_visits_clear(), says that no other process has counted what arrived in a later slot. */
void merge_visits_now(struct merge_visits *merge, int64_t now_s);

/* The number of the slot for events that arrive at @arrival_s (UTC). */
int64_t merge_visits_slot(const struct merge_visits *merge, int64_t arrival_s);

/* Note that Redis is to be asked for the visitor of @row, an event that arrived at @arrival_s
 * (UTC).  @expected: in which slot, counted from that of the arrival, Redis is said to have the
 * visit with the user's index.  False: out of memory. */
bool merge_visits_ask(struct merge_visits *merge, const struct row *row, int64_t arrival_s,
    enum known_visit expected) MUST_CHECK;

/* Append the questions to @out, and return how many they are.  @tag is the partition's.  If memory
 * is out, out->failed is set. */
size_t merge_visits_write_questions(
    struct merge_visits *merge, const char *tag, struct buffer *out);

/* Take the answer to question @i, in the order of the questions.  False: @reply is none. */
bool merge_visits_take(struct merge_visits *merge, size_t i, const struct reply *reply) MUST_CHECK;

/* ---- indices of users ---- */

/* When all answers are there: set a hash of the generation of users, of which 40 bits are used. */
void merge_visits_generation(struct merge_visits *merge, uint64_t generation);

/* Call @visit for each user whose visit was expected, and not found with an index of this
 * generation.  Returns how many they are. */
size_t merge_visits_missing(const struct merge_visits *merge,
    void (*visit)(void *data, const struct visitor_id *id), void *data);

/* What Redis remembers of a user whose visit was expected.  False: it was not expected. */
bool merge_visits_user(
    struct merge_visits *merge, const struct visitor_id *id, struct known_user *ret) MUST_CHECK;

/* Have the index and the day of the user remembered with the visit, if the visit is kept. */
void merge_visits_set_user(
    struct merge_visits *merge, const struct visitor_id *id, uint32_t index, int32_t active_day);

/* Is a visit of the user kept, with the user's index? */
bool merge_visits_keeps(struct merge_visits *merge, const struct visitor_id *id) MUST_CHECK;

/* Call @visit for each user of whom a visit with the index is kept, with the visit's slot. */
void merge_visits_users(const struct merge_visits *merge,
    void (*visit)(void *data, const struct visitor_id *id, int64_t slot), void *data);

/* ---- visits ---- */

/* What an event does to the visits of its visitor.  All zero: nothing that is counted. */
struct visit_step {
    bool begins;      /* the event begins a visit */
    bool engages;     /* the event is the second one of the open visit */
    uint32_t seconds; /* the open visit grows by so much: at most by one timeout */
};

/* Add the event of @row, whose visitor was asked for, and return what it does.  Events are added in
 * the order of arrival. */
struct visit_step merge_visits_add(
    struct merge_visits *merge, const struct row *row, int64_t arrival_s);

/* Append the commands that keep the last event of each visitor to @out, and return how many they
 * are.  If memory is out, out->failed is set. */
size_t merge_visits_write(const struct merge_visits *merge, const char *tag, struct buffer *out);

#endif
