/* data_set.h - does a server have the data that this process began with?
 *
 * Layer: storage.  Belongs to the thread of the connection.
 *
 * All data of an installation names its data set: the state of each partition does, in `cfg`
 * (schema/settings.h).  A server may hold the data of another installation: an address that leads
 * elsewhere now, or a data set that was restored in place of this one.  So each new connection
 * reads a state of the server before anything else is asked or written over it.
 *
 * A server that has no state tells nothing: it may have lost its data (partition_marks.h).
 */
#ifndef STORAGE_CORE_DATA_SET_H
#define STORAGE_CORE_DATA_SET_H

#include "storage/core/server.h"

/* Is what @server has, over @redis, not the data of another installation?  Asks until @deadline_ms
 * (CLOCK_MONOTONIC).  Before this process knows its own data set nothing is asked.  False: @error,
 * of @error_n bytes, says why; if it is the data, core_refuses() says so from now on. */
bool data_set_prove(struct core *core, const struct server *server, struct redis *redis,
    int64_t deadline_ms, char *error, size_t error_n) MUST_CHECK;

#endif
