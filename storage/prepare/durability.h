/* durability.h - how much of what it has answered a Redis may forget when it crashes.
 *
 * Layer: storage, pure.  Thread-safe: no state.
 *
 *   append-only file   appendfsync       forgets at most   warning
 *   yes                always            nothing           -
 *   yes                everysec          2 s               -
 *   yes                no                unknown           what the system had not written
 *   yes                may not be read   unknown           that it may not
 *   no                 -                 unknown           everything since the last snapshot
 *
 * Where it is unknown, 2 s are reckoned with.
 */
#ifndef STORAGE_PREPARE_DURABILITY_H
#define STORAGE_PREPARE_DURABILITY_H

#include "storage/redis/reply.h"

#define GO_BACK_MS 2000 /* with everysec Redis puts an fsync off that long while one is under way */

struct durability {
    int64_t go_back_ms;
    const char *warning; /* static; NULL: none */
};

/* @has_aof: has it an append-only file?  @config: the reply to CONFIG GET
 * appendfsync, which may be an error. */
struct durability durability_of(bool has_aof, const struct reply *config);

#endif
