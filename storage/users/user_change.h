/* user_change.h - runs one script that changes what Redis knows of one user.
 *
 * Layer: storage.  Not thread-safe: it belongs to a reader's thread.
 *
 * A fold may remember a user's index and bits.  So each such script gives the partition's users a
 * new generation, which tells folds that they must ask again.
 */
#ifndef STORAGE_USERS_USER_CHANGE_H
#define STORAGE_USERS_USER_CHANGE_H

#include "storage/users/bitmaps.h"

/* A script, and the user that it changes. */
struct user_change {
    enum script script;
    struct slice site, user;
    unsigned partition;     /* the user's, see activity_partition() */
    const struct key *keys; /* n_keys of them, behind the partition's state and index of users */
    size_t n_keys;
};

/* Run the script on cfg, user, a new generation and the site, as a request of its own, so that a
 * lost answer leaves nothing else in doubt.  The script answers a number; -2 says that nothing was
 * done because the data is kept with other settings, and becomes STORAGE_CONFIG.  *ret_answer is
 * the number, and untouched without an answer. */
enum storage_err user_change_run(struct reader *reader, struct storage_job *job,
    const struct user_change *change, int64_t *ret_answer, bool *ret_lost) MUST_CHECK;

/* Tell all processes that a change is over, in whatever partition: no answer that was remembered
 * (read/answers.h) holds any more. */
enum storage_err user_change_tell(
    struct reader *reader, struct storage_job *job, bool *ret_lost) MUST_CHECK;

#endif
