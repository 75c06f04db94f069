/* merge_activity.h - many rows into few bits: who was active on which day, and did what.
 *
 * Layer: storage, pure.  One owner; scratch memory is kept between uses.
 * Every event with a user sets the user's bit in the bitmap of `active` and its day, and in those
 * of its actions.  A bit is sent once, whatever number of events set it.
 */
#ifndef STORAGE_WRITE_MERGE_ACTIVITY_H
#define STORAGE_WRITE_MERGE_ACTIVITY_H

#include "storage/base/buffer.h"
#include "storage/schema/hashed_event.h"
#include "storage/time/day.h"
#include "storage/write/known_users.h"

struct merge_activity;

struct merge_activity *merge_activity_new(void);
void merge_activity_free(struct merge_activity *merge);
void merge_activity_clear(struct merge_activity *merge);

/* Add the event of @row, number @number of its flush, which has a user.  @known: what is known of
 * the user, or NULL.  False: out of memory. */
bool merge_activity_add(struct merge_activity *merge, const struct row *row, uint32_t number,
    const struct activity_day *day, const struct known_user *known);

/* Write the section "activity" of write.lua; see merge_counts_write. */
void merge_activity_write(const struct merge_activity *merge, const char *tag, struct buffer *keys,
    size_t *n_keys, struct buffer *args, size_t *n_args);

/* Call @visit for each user whose bits are sent, those without @index (USER_INDEX_NONE) in the
 * order in which their names stand in the section.  @number: of a row of theirs; @active_day:
 * newest day whose bit of `active` is sent or known to be set. */
void merge_activity_users(const struct merge_activity *merge,
    void (*visit)(void *data, uint32_t number, uint32_t index, int32_t active_day), void *data);

#endif
