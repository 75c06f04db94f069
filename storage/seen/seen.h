/* seen.h - what readers do for STORAGE_SEEN.
 *
 * Layer: storage, private to readers.c.
 */
#ifndef STORAGE_SEEN_SEEN_H
#define STORAGE_SEEN_SEEN_H

#include "storage/read/operation.h"

reader_op_fn seen_run;

#endif
