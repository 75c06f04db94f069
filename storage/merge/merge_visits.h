/* merge_visits.h - which events begin a visit, and by what others make a visit grow.
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
 * A named event begins no visit.  It prolongs one that is open: where a page view would begin none,
 * the event is remembered as a page view would be.  Else nothing is remembered of it.
 *
 * The first event that comes to an open visit engages the visit: the visit is no bounce any more.
 * A visit lasts from its first event to its last one, so an event at t > L adds t - L seconds.  An
 * event at t <= L adds none, and one that is older than L - timeout is no part of the visit.
 * These are Plausible's definitions of bounce rate and visit duration,
 * https://plausible.io/docs/metrics-definitions, where custom events engage a visit, too.
 *
 * "Older" goes by the time of arrival.  Redis remembers, in hashes that are cut by the time of
 * arrival into slots of two timeouts (schema/key.h), the last event of each visitor.  Use:
 *
 *     merge_visits_ask      each visitor that will come: may be one too many
 *     merge_visits_write_questions, merge_visits_take   what Redis remembers of them
 *     merge_visits_add      each event: does it begin a visit?
 *     merge_visits_write    what Redis shall remember
 *
 * Of a visitor who is a user Redis remembers the user's index, too, and the newest day on which the
 * user is known to have been active: then the user need not be asked for by name, in a hash of all
 * users.  An index holds for one generation of users (known_users.h), and stands beside a hash of
 * that generation.
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
void merge_visits_free(struct merge_visits *merge);
void merge_visits_clear(struct merge_visits *merge);

/* Before any visitor is asked for: the time by Redis's clock.  0, as behind merge_visits_clear():
 * no other process has counted what arrived in a later slot. */
void merge_visits_now(struct merge_visits *merge, int64_t now_s);

/* The slot of what arrived then. */
int64_t merge_visits_slot(const struct merge_visits *merge, int64_t arrival_s);

/* The visitor of @row is to be asked for: an event that arrived at @arrival_s.  @expected: where
 * Redis is said to have the visit, and the index of this user; counted from the slot of the
 * arrival.  False: out of memory. */
bool merge_visits_ask(struct merge_visits *merge, const struct row *row, int64_t arrival_s,
    enum known_visit expected) MUST_CHECK;

/* Append the questions to @out, and return how many they are. */
size_t merge_visits_write_questions(
    struct merge_visits *merge, const char *tag, struct buffer *out);

/* The answer to question @i, in the order of the questions.  False: it is none. */
bool merge_visits_take(struct merge_visits *merge, size_t i, const struct reply *reply) MUST_CHECK;

/* ---- indices of users ---- */

/* When all answers are there: the generation of users, as a number that fits into 40 bits. */
void merge_visits_generation(struct merge_visits *merge, uint64_t generation);

/* Call @visit for each user who was expected in vain.  Returns how many they are. */
size_t merge_visits_missing(const struct merge_visits *merge,
    void (*visit)(void *data, const struct visitor_id *id), void *data);

/* What Redis knows of a user who was expected.  False: the user was not expected. */
bool merge_visits_user(
    struct merge_visits *merge, const struct visitor_id *id, struct known_user *ret) MUST_CHECK;

/* The user has this index, as Redis will find it with the visit, if that is kept. */
void merge_visits_set_user(
    struct merge_visits *merge, const struct visitor_id *id, uint32_t index, int32_t active_day);

/* Is a visit kept that has the user's index? */
bool merge_visits_keeps(struct merge_visits *merge, const struct visitor_id *id) MUST_CHECK;

/* Call @visit for each user of whom one is, with its slot. */
void merge_visits_users(const struct merge_visits *merge,
    void (*visit)(void *data, const struct visitor_id *id, int64_t slot), void *data);

/* ---- visits ---- */

/* What an event does to the visits of its visitor.  All zero: nothing that is counted. */
struct visit_step {
    bool begins;      /* a visit */
    bool engages;     /* the open visit, as the second event of it */
    uint32_t seconds; /* by which the open visit grows: at most one timeout */
};

/* What the event of @row does.  Its visitor was asked for.  In order of arrival. */
struct visit_step merge_visits_add(
    struct merge_visits *merge, const struct row *row, int64_t arrival_s);

/* Append the commands that keep what was added, and return how many they are. */
size_t merge_visits_write(const struct merge_visits *merge, const char *tag, struct buffer *out);

#endif
