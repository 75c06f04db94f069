/* follow_plan.h - decide which files of a log are to be read, and what is missing, by the files
 * that were remembered and the files that lie there.
 *
 * Layer: service/client, pure.  Thread-safe.
 *
 * A remembered file is one of these:
 *
 *   same inode, its first bytes, not shorter   the file, whatever its name is now
 *   same inode, else another file               it was truncated: a rotated file with its first
 *                                               bytes is the copy (logrotate's copytruncate)
 *   same inode, and seen only empty             it stays; but a newer rotated file that is no copy
 *                                               of the present bytes is a copy of earlier ones
 *   no such inode                               it is gone; a gzipped file may have its first bytes
 *
 * An inode without its first bytes may also be another file that got the inode of a deleted one.
 * The same search then finds nothing, and the file is gone.
 *
 * Files that are not remembered are new: the log itself, and, when the log was replaced since the
 * last look, rotated files that were written after the newest remembered file was last written as
 * the log.  Where the clock was seen to be set back since, earlier rotated files are new, too.
 *
 * Files that have rotated before the very first look are not followed: they are remembered, so that
 * they are never read, however they grow.  Such a file may be another log, whose name has a number.
 */
#ifndef SERVICE_CLIENT_FOLLOW_FOLLOW_PLAN_H
#define SERVICE_CLIENT_FOLLOW_FOLLOW_PLAN_H

#include "service/client/follow/follow_listing.h"
#include "service/client/follow/follow_state.h"

#define FOLLOW_NONE SIZE_MAX

struct follow_plan {
    /* For each remembered file, the entry that has its bytes.  FOLLOW_NONE: the file is gone. */
    size_t entries[FOLLOW_FILES];
    bool is_copy[FOLLOW_FILES]; /* the entry has another inode than the file */
    /* For each file that is gone, the gzipped entry that was made of the file, or FOLLOW_NONE. */
    size_t packed[FOLLOW_FILES];
    /* Entries to remember from now on, behind the remembered files, the oldest first.  Those that
     * the very first look finds already rotated must never be read. */
    size_t n_new, new_entries[FOLLOW_ENTRIES];
    /* Entries that were never read, because they are compressed or may not be read. */
    size_t n_unread, unread[FOLLOW_ENTRIES];
};

/* Make the plan *ret.  @is_first: nothing was ever remembered, and *state is empty. */
void follow_plan(const struct follow_state *state, bool is_first,
    const struct follow_listing *listing, struct follow_plan *ret);

#endif
