/* page_sets.h - sets of pages that a site has given names: read, and used in place of pages.
 *
 * Layer: storage, operations of reader threads.
 *
 * t:{0}:sets:<site> is a hash by name.  The value of a set is its pages, each followed by '\n',
 * which no page has in it.  To write a set twice is the same as to write it once, so a change whose
 * connection was lost is tried again.
 */
#ifndef STORAGE_READ_PAGE_SETS_H
#define STORAGE_READ_PAGE_SETS_H

#include "storage/base/compiler.h"
#include "storage/read/operation.h"

/* If @set has a name, replace *pages by a list of them and of the set's pages, each once.  The list
 * is kept in @set, for a question that is run again; storage_job_release frees it.
 * STORAGE_NO_SET: there is no set of that name, or it is empty. */
enum storage_err page_set_resolve(struct reader *reader, struct storage_job *job,
    struct page_set_ref *set, struct slice site, const struct slice **pages, size_t *n_pages,
    bool *ret_lost) MUST_CHECK;

/* Decode a set's value: the @n_first pages of @first, and behind them the set's pages that are not
 * among them.  They are one block, which the caller frees.  The block has the bytes of the set's
 * pages in it; those of @first stay where they are.  Foreign bytes give pages that nobody has,
 * never a fault.  What is beyond PAGE_SET_MAX is left out.  NULL: no memory. */
struct slice *page_set_decode(
    const struct slice *first, size_t n_first, struct slice value, size_t *ret_n) MUST_CHECK;

#endif
