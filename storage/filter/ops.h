/* ops.h - what readers do for STORAGE_FILTER_READ and STORAGE_FILTER_WRITE.
 *
 * Layer: storage, private to readers.c.
 */
#ifndef STORAGE_FILTER_OPS_H
#define STORAGE_FILTER_OPS_H

#include "storage/filter/state.h"
#include "storage/read/operation.h"

/* FILTER_CHECK (filter/items.c) and FILTER_ADD (filter/add.c) of a filter that was learnt.  False:
 * see pipe.err. *ret_gone: the filter was deleted meanwhile; items without an answer are
 * FILTER_PENDING. */
bool filter_check_items(struct filter_state *state, struct filter_job *job);
bool filter_add_items(struct filter_state *state, struct filter_job *job, bool *ret_gone);

#endif
