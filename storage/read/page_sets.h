/* page_sets.h - sets of pages that a site has given names: read, and used in place of pages.
 *
 * Layer: storage.  Each call belongs to a reader thread; the sets are in Redis alone.
 *
 * t:{0}:sets:<site> is a hash by name.  The value of a set is its pages, each followed by '\n',
 * which no page has in it.  To write a set twice is the same as to write it once, so a change whose
 * connection was lost is tried again.
 */
#ifndef STORAGE_READ_PAGE_SETS_H
#define STORAGE_READ_PAGE_SETS_H

#include "storage/base/compiler.h"
#include "storage/read/operation.h"

/* If @set has a name, replace *pages by a list of those pages and of the set's pages, each once.
 * The list is kept in @set, for a question that is run again; storage_job_release() frees it.
 * STORAGE_NO_SET: there is no set of that name, or the set is empty. */
enum storage_err page_set_resolve(struct reader *reader, struct storage_job *job,
    struct page_set_ref *set, struct slice site, const struct slice **pages, size_t *n_pages,
    bool *ret_lost) MUST_CHECK;

/* Decode the value of a set.  The result has the @n_first pages of @first, each once, and behind
 * them the set's other pages.  It is one block, which the caller frees.  The bytes of the set's
 * pages are in the block; the bytes of @first stay where they are.  Foreign bytes give pages that
 * no site has, never a fault.  More than PAGE_SET_MAX pages are left out.  NULL: no memory. */
struct slice *page_set_decode(
    const struct slice *first, size_t n_first, struct slice value, size_t *ret_n) MUST_CHECK;

#endif
