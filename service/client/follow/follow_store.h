/* follow_store.h - the state file of `tallyd import --follow`.
 *
 * Layer: service/client.  Blocking.  Not thread-safe.
 *
 * The file is replaced as a whole: a new file is written beside the old one, synced and renamed,
 * and the directory is synced.  So after a kill, or after a loss of power, there is the old state
 * or the new one.  A state is saved before a piece is sent.  So the next process knows the bounds,
 * and with them the key, of a piece that may be counted already.
 *
 * One process at a time holds a state, by a lock (flock) on its file.
 */
#ifndef SERVICE_CLIENT_FOLLOW_FOLLOW_STORE_H
#define SERVICE_CLIENT_FOLLOW_FOLLOW_STORE_H

#include "service/client/follow/follow_state.h"
#include "storage/base/compiler.h"

struct follow_store {
    const char *path; /* borrowed */
    int fd;           /* the file at `path`, open and locked; -1: there is none */
    char error[256];  /* why the last call failed */
};

/* Lock the file at @path, which must outlive *ret, and read the state.  *ret_is_new: there was no
 * state, and *ret_state is empty.  False: ret->error says why, and there is nothing to close. */
bool follow_store_open(struct follow_store *ret, const char *path, struct follow_state *ret_state,
    bool *ret_is_new) MUST_CHECK;

/* Write @state.  True: @state is on the disk.  False: store->error says why. */
bool follow_store_save(struct follow_store *store, const struct follow_state *state) MUST_CHECK;

/* Close the file, which gives the lock back.  A store without a file is fine. */
void follow_store_close(struct follow_store *store);

#endif
