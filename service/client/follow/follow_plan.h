/* follow_plan.h - which files of a log are to be read, and what is missing, from what was
 * remembered and what lies there.
 *
 * Layer: service/client, pure.  Thread-safe.
 *
 * A remembered file is one of these:
 *
 *   same inode, its first bytes, not shorter   the file, whatever its name is now
 *   same inode, else another file               it was truncated: a rotated file with its first
 *                                               bytes is the copy (logrotate's copytruncate)
 *   same inode, and never seen but empty        as it is; but a newer rotated file, not a copy of
 *                                               what is there now, is one of what was there before
 *   no such inode                               it is gone; a gzipped file may have its first bytes
 *
 * An inode without its first bytes may also be another file that got the inode of a deleted one.
 * The same search then finds nothing, and the file is gone.
 *
 * A file that is not remembered is new: the log itself, and, when the log was replaced since the
 * last look, rotated files that were written after the newest remembered one, as long as that was
 * the log.  Where the clock was seen to be set back since, earlier ones are, too.
 *
 * At the first look of all, what has rotated already is none of the follower's: it is remembered,
 * so that it is never read, however it grows.  It may be another log, whose name has a number.
 */
#ifndef SERVICE_CLIENT_FOLLOW_FOLLOW_PLAN_H
#define SERVICE_CLIENT_FOLLOW_FOLLOW_PLAN_H

#include "service/client/follow/follow_listing.h"
#include "service/client/follow/follow_state.h"

#define FOLLOW_NONE SIZE_MAX

struct follow_plan {
    /* Of each remembered file: the entry that has its bytes.  FOLLOW_NONE: it is gone. */
    size_t entries[FOLLOW_FILES];
    bool is_copy[FOLLOW_FILES]; /* the entry has another inode */
    /* Of a file that is gone: the gzipped entry that was made of it, or FOLLOW_NONE. */
    size_t packed[FOLLOW_FILES];
    /* Entries to remember from now on, behind the files that are: the oldest first.  Those that a
     * first look finds already rotated are to be passed over. */
    size_t n_new, new_entries[FOLLOW_ENTRIES];
    /* Entries that were never read, because they are compressed or may not be read. */
    size_t n_unread, unread[FOLLOW_ENTRIES];
};

/* @is_first: nothing was ever remembered, and *state is empty. */
void follow_plan(const struct follow_state *state, bool is_first,
    const struct follow_listing *listing, struct follow_plan *ret);

#endif
