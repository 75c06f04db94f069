/* listed_keys.h - the keys that an answer is made of: counted by level and, with explain, listed.
 *
 * Layer: storage.  Belongs to a reader thread.
 *
 * An answer names a coarse bucket only if the bucket is rolled up.  A plan also uses coarse buckets
 * so far ahead that no event can be there (time/cover.h), because nothing need be read for them.
 * The answer names the minutes of such a bucket instead, as long as these are not too many.
 */
#ifndef STORAGE_READ_LISTED_KEYS_H
#define STORAGE_READ_LISTED_KEYS_H

#include "storage/read/proved_read.h"

/* A plan for a list has so many keys at most; and up to here the future is named by minutes. */
#define COUNTED_KEYS_MAX 50000
/* Bytes of pages' names in listed keys.  The answer is made in one go, by a thread that has other
 * requests to serve. */
#define COUNTED_BYTES_MAX ((size_t)8 * 1024 * 1024)

/* Count in r->asked the keys that @pages have in the buckets of @cover (key_bucket() in
 * schema/key.h); with explain, list the keys, too.  STORAGE_NOMEM; STORAGE_TOO_BROAD: the names
 * would take more than COUNTED_BYTES_MAX. */
enum storage_err listed_keys_add(struct proved_read *r, unsigned partition, enum key_kind kind,
    const struct slice *const *pages, size_t n_pages, const struct cover *cover);

/* Begin anew: forget the keys that were counted, of this attempt or of one on another connection.
 * r->keys_planned is set: minutes of the future are named in the room that the plan leaves. */
void listed_keys_clear(struct proved_read *r);

/* Put the keys that were listed in order of time, then of their names. */
void listed_keys_sort(struct window_question *asked);

#endif
