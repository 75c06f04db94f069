/* merge_seen.h - who saw what: the pairs (user, page) of many events, log by log.
 *
 * Layer: storage, pure.  One owner; scratch memory is kept between uses.
 *
 * A pair is a fingerprint of 8 bytes, and is appended to the log of its site and of the month in
 * which it arrived (seen/layout.h).
 */
#ifndef STORAGE_MERGE_MERGE_SEEN_H
#define STORAGE_MERGE_MERGE_SEEN_H

#include "storage/base/buffer.h"
#include "storage/redis/reply.h"
#include "storage/schema/hashed_event.h"
#include "storage/seen/layout.h"

struct merge_seen;

struct merge_seen *merge_seen_new(void) MUST_CHECK; /* NULL: out of memory */
void merge_seen_free(struct merge_seen *merge);     /* NULL is harmless */
void merge_seen_clear(struct merge_seen *merge);    /* forgets all, and keeps memory */

/* Add the pair of @row, which has a user, and whose event arrived at @arrival_s (UTC).  False: out
 * of memory. */
bool merge_seen_add(struct merge_seen *merge, const struct row *row, int64_t arrival_s) MUST_CHECK;

/* Append the commands to @out, and return how many they are: APPEND and PEXPIREAT NX for each log.
 * @keep_s: how long logs are kept (seen/layout.h).  A log that expires by @now_ms (Redis's clock,
 * UTC) is left out.  If memory is out, out->failed is set. */
size_t merge_seen_write(const struct merge_seen *merge, const char *tag, int64_t keep_s,
    int64_t now_ms, struct buffer *out);

/* The commands of merge_seen_write() were carried out, with the answers @replies.  Append to
 * @ret_keys the key of each log that has just passed a multiple of SEEN_LOG_BYTES, and a blank: the
 * form of seen_fold_due(). */
void merge_seen_due(const struct merge_seen *merge, const char *tag, int64_t keep_s, int64_t now_ms,
    const struct reply *replies, struct buffer *ret_keys);

#endif
