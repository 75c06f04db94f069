/* sites.h - which sites have had events.
 *
 * Layer: storage, an operation of readers.c.
 */
#ifndef STORAGE_PAGES_SITES_H
#define STORAGE_PAGES_SITES_H

#include "storage/read/operation.h"

enum storage_err sites_run(struct reader *reader, struct storage_job *job, bool *ret_lost);

#endif
