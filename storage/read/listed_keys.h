/* listed_keys.h - the keys that an answer is made of: counted by level and, with explain, listed.
 *
 * Layer: storage.  Belongs to a reader thread.
 *
 * A user is told that a plan uses a coarse bucket only where that is rolled up.  A plan also uses
 * coarse buckets so far ahead that no event can be there (time/cover.h), because nothing need be
 * read for them.  Such a bucket is told as the minutes that stand for it, as long as these are not
 * too many.
 */
#ifndef STORAGE_READ_LISTED_KEYS_H
#define STORAGE_READ_LISTED_KEYS_H

#include "storage/read/proved_read.h"

#define COUNTED_KEYS_MAX 50000 /* planned for a list; up to here the future is told by minutes */
/* Bytes of pages' names in listed keys.  The answer is made in one go, by a thread that has others
 * to serve. */
#define COUNTED_BYTES_MAX ((size_t)8 * 1024 * 1024)

/* Count the key of each bucket of @cover, or those of @n_pages pages (key_bucket() in
 * schema/key.h), in r->asked, and with explain list them.  STORAGE_NOMEM; STORAGE_TOO_BROAD: more
 * would be listed than may. */
enum storage_err listed_keys_add(struct proved_read *r, unsigned partition, enum key_kind kind,
    const struct slice *const *pages, size_t n_pages, const struct cover *cover);

/* Forget the keys that were counted, of this attempt or of one on another connection. */
void listed_keys_clear(struct proved_read *r);

/* Put the keys that were listed in order of time, then of their names. */
void listed_keys_sort(struct window_question *asked);

#endif
