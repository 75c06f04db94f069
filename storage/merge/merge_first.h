/* merge_first.h - which events were the first of their user's day, for requests that ask.
 *
 * Layer: storage, pure.  One owner; scratch memory is kept between uses.
 *
 * A row with a ticket (job/first_job.h) asks which of its actions were the user's first on that
 * day.  An action was first if its bit is not set in Redis, and no row before it in the share has
 * set the bit.  Use:
 *
 *     merge_first_ask              each row with a ticket, once its user's index is known
 *     merge_first_write_questions, merge_first_take   the bits in Redis, behind the WATCH
 *     merge_first_add              each row with a user that is counted, in order
 *     merge_first_write            notes the rows that were first (schema/first_note.h)
 */
#ifndef STORAGE_MERGE_MERGE_FIRST_H
#define STORAGE_MERGE_MERGE_FIRST_H

#include "storage/base/buffer.h"
#include "storage/base/compiler.h"
#include "storage/redis/reply.h"
#include "storage/schema/hashed_event.h"
#include "storage/time/day.h"

struct merge_first;

struct merge_first *merge_first_new(void) MUST_CHECK; /* NULL: out of memory */
void merge_first_free(struct merge_first *merge);     /* NULL is harmless */
void merge_first_clear(struct merge_first *merge);    /* forgets all, and keeps memory */

/* Note that Redis is to be asked for the bits of @row's actions on @day (time/day.h), at the user's
 * @index; USER_INDEX_NONE: the user has no index, and so no bit.  @row stays until the commands are
 * written.  False: out of memory. */
bool merge_first_ask(
    struct merge_first *merge, const struct row *row, int64_t day, uint32_t index) MUST_CHECK;

/* Append the questions to @out, and return how many they are.  @tag is the partition's.  If memory
 * is out, out->failed is set. */
size_t merge_first_write_questions(
    const struct merge_first *merge, const char *tag, struct buffer *out);

/* Take the answer to question @i.  False: @reply is none. */
bool merge_first_take(struct merge_first *merge, size_t i, const struct reply *reply) MUST_CHECK;

/* @row, which stays until the commands are written, is counted on @day.  If the bits of the day
 * expire by @now_ms (Redis's clock, UTC), none is set, so no action is first.  False: out of
 * memory.
 */
bool merge_first_add(struct merge_first *merge, const struct row *row,
    const struct activity_day *day, int64_t now_ms) MUST_CHECK;

/* Append the commands to @out, and return how many they are.  If memory is out, out->failed is set.
 */
size_t merge_first_write(const struct merge_first *merge, const char *tag, struct buffer *out);

/* How many actions were found to be first. */
size_t merge_first_count(const struct merge_first *merge);

#endif
