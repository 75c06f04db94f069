/* data_set.h - does a server have the data that this process began with?
 *
 * Layer: storage.  Belongs to the thread of the connection.
 *
 * The state of each partition names the data set of its installation, in `cfg` (schema/settings.h).
 * A server may hold the data of another installation: its address leads elsewhere now, or another
 * data set was restored in place of this one.  So each new connection reads a state of the server
 * before anything else is asked or written over it.
 *
 * A server that has no state tells nothing: it may have lost its data (partition_marks.h).
 */
#ifndef STORAGE_SESSION_DATA_SET_H
#define STORAGE_SESSION_DATA_SET_H

#include "storage/session/server.h"

/* Prove over @redis that @server does not have the data of another installation, by @deadline_ms
 * (CLOCK_MONOTONIC).  True also, without a question, before this process knows its own data set.
 * False: @error, of @error_n bytes, says why; if the data is another installation's, core_refuses()
 * says so from now on. */
bool data_set_prove(struct core *core, const struct server *server, struct redis *redis,
    int64_t deadline_ms, char *error, size_t error_n) MUST_CHECK;

#endif
