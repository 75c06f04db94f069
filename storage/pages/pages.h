/* pages.h - the top pages of a window, by page views or by visitors.
 *
 * Layer: storage, an operation of readers.c.
 *
 * Page views are summed up for every page (pages/scan.h), so their order is exact.  By visitors,
 * pages are walked in the order of their page views, and the sketches of some at a time are read:
 * nobody visits a page without viewing it, so once the next page has fewer page views than the n-th
 * page so far has visitors, no page behind it can be among the first n; nor if it has as many and a
 * later name, as those behind it then have too.  (An estimate can be above
 * the page views all the same; it is cut to them, which makes the rule hold of what is answered.)
 */
#ifndef STORAGE_PAGES_PAGES_H
#define STORAGE_PAGES_PAGES_H

#include "storage/read/operation.h"

enum storage_err pages_run(struct reader *reader, struct storage_job *job, bool *ret_lost);

#endif
