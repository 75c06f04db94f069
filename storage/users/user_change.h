/* user_change.h - one script that changes what is known of one user.
 *
 * Layer: storage.  One owner: the thread whose session it is.
 *
 * A fold may remember a user's index and bits.  So each such script gives the partition's users a
 * new generation, by which folds see that they must ask again.
 */
#ifndef STORAGE_USERS_USER_CHANGE_H
#define STORAGE_USERS_USER_CHANGE_H

#include "storage/users/bitmaps.h"

/* What to run, and on whom. */
struct user_change {
    enum script script;
    struct slice site, user;
    unsigned partition;     /* the user's, see activity_partition() */
    const struct key *keys; /* n_keys of them, behind the partition's state and index of users */
    size_t n_keys;
};

/* Run the script on cfg, user, a new generation and the site, as a request of its own, so that its
 * doubt is about nothing else.  It answers a number; one of -2 says that nothing was done because
 * the data is kept with other settings, and becomes STORAGE_CONFIG.  *ret_answer is the number;
 * without an answer it stays what it was. */
enum storage_err user_change_run(struct reader *reader, struct storage_job *job,
    const struct user_change *change, int64_t *ret_answer, bool *ret_lost) MUST_CHECK;

/* The change is over, in whatever partition: no answer that was remembered holds any more
 * (read/answers.h), in any process. */
enum storage_err user_change_tell(
    struct reader *reader, struct storage_job *job, bool *ret_lost) MUST_CHECK;

#endif
