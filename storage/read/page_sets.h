/* page_sets.h - sets of pages under a name: written, read, deleted, and used in place of pages.
 *
 * Layer: storage, operations of readers.c.
 *
 * t:{0}:sets:<site> is a hash of names; a set is its pages, each with '\n' behind it, which no page
 * has in it (pages have no control characters).  Writing one twice is the same as writing it once,
 * so a lost connection is tried again.
 */
#ifndef STORAGE_READ_PAGE_SETS_H
#define STORAGE_READ_PAGE_SETS_H

#include "storage/read/operation.h"

/* If @set has a name: replace *pages by them and the set's, each once.  A question that is run
 * again keeps what it has. */
enum storage_err page_set_resolve(struct reader *reader, struct storage_job *job,
    struct page_set_ref *set, struct slice site, const struct slice **pages, size_t *n_pages,
    bool *ret_lost);

/* Decode a set's value: the @n_first pages, and its own that are not among them, into one block
 * (malloc) that holds their bytes too.  Foreign bytes give pages that nobody has, never a fault;
 * what is beyond PAGE_SET_MAX is left out.  NULL: no memory. */
struct slice *page_set_decode(
    const struct slice *first, size_t n_first, struct slice value, size_t *ret_n);

#endif
