/* seen_op.h - what readers do for STORAGE_SEEN.
 *
 * Layer: storage, private to reader.c.
 */
#ifndef STORAGE_SEEN_OP_H
#define STORAGE_SEEN_OP_H

#include "storage/reader_op.h"

reader_op_fn seen_run;

#endif
