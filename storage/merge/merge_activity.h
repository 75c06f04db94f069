/* merge_activity.h - many events into few bits: who was active on which day, and did what.
 *
 * Layer: storage, pure.  One owner; scratch memory is kept between uses.
 *
 * Every event with a user sets the user's bit in the bitmap of `active` and its day, and in those
 * of its actions.  A bit is set once, whatever number of events ask for it.  Its place is the
 * user's index, which a user gets with the first event and keeps: dense, never given again.  Use:
 *
 *     merge_activity_ask     each user who may come; one too many does no harm
 *     merge_activity_write_questions, merge_activity_take   their indices
 *     merge_activity_add     each event
 *     merge_activity_write   gives indices to those who have none, and sets the bits
 */
#ifndef STORAGE_MERGE_MERGE_ACTIVITY_H
#define STORAGE_MERGE_MERGE_ACTIVITY_H

#include "storage/base/buffer.h"
#include "storage/base/compiler.h"
#include "storage/known/known_users.h"
#include "storage/redis/reply.h"
#include "storage/schema/hashed_event.h"
#include "storage/time/day.h"

struct merge_activity;

struct merge_activity *merge_activity_new(void) MUST_CHECK; /* NULL: out of memory */
void merge_activity_free(struct merge_activity *merge);     /* NULL is harmless */
void merge_activity_clear(struct merge_activity *merge);    /* forgets all, and keeps memory */

/* Note that Redis is to be asked for the user of @row, unless @known says the user's index; NULL:
 * it is not known.  @row stays until the commands are written.  False: out of memory. */
bool merge_activity_ask(
    struct merge_activity *merge, const struct row *row, const struct known_user *known) MUST_CHECK;

/* Append the questions to @out, and return how many they are.  @tag is the partition's.  If memory
 * is out, out->failed is set. */
size_t merge_activity_write_questions(
    struct merge_activity *merge, const char *tag, struct buffer *out);

/* Take the answer to the next question.  False: @reply is none. */
bool merge_activity_take(struct merge_activity *merge, const struct reply *reply) MUST_CHECK;

/* The index that the user of @row, who was asked for, has in Redis; USER_INDEX_NONE: none so far.
 */
uint32_t merge_activity_index(struct merge_activity *merge, const struct row *row);

/* Add the event of @row, whose user was asked for with the same @known.  False: out of memory. */
bool merge_activity_add(struct merge_activity *merge, const struct row *row,
    const struct activity_day *day, const struct known_user *known) MUST_CHECK;

/* Append the commands to @out, and return how many they are.  A bitmap that expires by @now_ms
 * (Redis's clock, UTC) is left out.  If memory is out, out->failed is set. */
size_t merge_activity_write(
    struct merge_activity *merge, const char *tag, int64_t now_ms, struct buffer *out);

/* Behind merge_activity_write(): call @visit for each user whose bits were written, with the index.
 * @active_day is the newest day whose bit of `active` is set then. */
void merge_activity_users(const struct merge_activity *merge,
    void (*visit)(void *data, const struct visitor_id *id, uint32_t index, int32_t active_day),
    void *data);

#endif
