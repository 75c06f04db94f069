/* fold_log.h - fold one log of a month into that month's filter.
 *
 * Layer: storage, private to seen/fold.c.  Belongs to its thread.
 */
#ifndef STORAGE_SEEN_FOLD_LOG_H
#define STORAGE_SEEN_FOLD_LOG_H

#include "storage/seen/fold_month.h"

#define FOLD_PIECE 32768 /* fingerprints that are folded at once: two logs */

struct fold_log {
    struct fold_month month; /* the month at hand */
    struct ver begin, end;   /* the filter's `ver` when the fold began, and when it is over */
    struct buffer bits;      /* the string at hand */
    uint64_t *pending;       /* fingerprints that are in no layer yet */
    size_t n_pending;
};

void fold_log_init(struct fold_log *f, struct core *core);
void fold_log_release(struct fold_log *f);

/* Fold @site's log of @month, if it is long enough to be worth the work, and a log that was left
 * half folded.  @session is connected to the server of @partition.  False: its connection must be
 * closed. */
bool fold_log(struct fold_log *f, struct session *session, unsigned partition, struct slice site,
    struct bucket month, int64_t deadline_ms) MUST_CHECK;

#endif
