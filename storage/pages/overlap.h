/* overlap.h - how many visitors two pages have in common over a window.
 *
 * Layer: storage, an operation of readers.c.  The estimate: hll_joint.h.
 */
#ifndef STORAGE_PAGES_OVERLAP_H
#define STORAGE_PAGES_OVERLAP_H

#include "storage/read/operation.h"

enum storage_err overlap_run(struct reader *reader, struct storage_job *job, bool *ret_lost);

#endif
