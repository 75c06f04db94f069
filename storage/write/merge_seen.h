/* merge_seen.h - the fingerprints of a part's pairs (user, page), site by site.
 *
 * Layer: storage, pure.  One owner; scratch memory is kept between uses.
 */
#ifndef STORAGE_WRITE_MERGE_SEEN_H
#define STORAGE_WRITE_MERGE_SEEN_H

#include "storage/base/buffer.h"
#include "storage/schema/hashed_event.h"
#include "storage/seen/layout.h"

struct merge_seen;

struct merge_seen *merge_seen_new(void);
void merge_seen_free(struct merge_seen *merge);
void merge_seen_clear(struct merge_seen *merge);

/* Add the pair of @row (it has a user).  False: out of memory. */
bool merge_seen_add(struct merge_seen *merge, const struct row *row);

/* Write the section "seen" of write.lua for the month that @now_s lies in; see merge_counts_write.
 */
void merge_seen_write(const struct merge_seen *merge, const char *tag, int64_t now_s,
    int64_t keep_s, struct buffer *keys, size_t *n_keys, struct buffer *args, size_t *n_args);

#endif
