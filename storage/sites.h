/* sites.h - which sites have had events.
 *
 * Layer: storage, an operation of reader.c.
 */
#ifndef STORAGE_SITES_H
#define STORAGE_SITES_H

#include "storage/reader_op.h"

enum storage_err sites_run(struct reader *reader, struct storage_job *job, bool *ret_lost);

#endif
