/* rolled.h - the state of a partition: the hash t:{p}:rolled, as a value.
 *
 * Layer: storage, pure.  Thread-safe: no state.
 *
 * Every reply about a partition's data brings the fields of this hash along.  They say which
 * buckets may be read (`st`), with which settings they were made (`cfg`), how long they are kept
 * (`kept`), and under which ids what was read may be remembered (`ver`, `over`).
 */
#ifndef STORAGE_SCHEMA_ROLLED_H
#define STORAGE_SCHEMA_ROLLED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/buffer.h"
#include "storage/redis/reply.h"
#include "storage/time/closed.h"

/* A random id that Redis keeps; n 0: none, and nothing may be remembered under it. */
#define VER_MAX 63
struct ver {
    uint8_t n;
    char text[VER_MAX];
};

bool ver_equal(const struct ver *a, const struct ver *b);

/* What was last seen of a partition.  It may be of any age: every reading has Redis prove it. */
struct partition_view {
    bool known; /* false: nothing was read yet, or the partition is empty */
    struct rollup_state state;
    struct retention retention;
    struct ver ver; /* a hint: what is remembered under it is proved by the next reply */

    /* Minutes that end at or before over_s have changed only if `over` has (n 0: none have ended).
     * over_held: the reply before had the same one, so it is likely that the next one has, too. */
    struct ver over;
    int64_t over_s;
    bool over_held;
};

/* Append a command that asks for the ROLLED_FIELDS fields that make a view, and for @more fields
 * whose names the caller appends.  @tag: the partition's. */
#define ROLLED_FIELDS 5
void rolled_ask(struct buffer *out, const char *tag, size_t more);

/* Take a view out of the reply, an array of ROLLED_FIELDS.  @cfg and @retention: the settings of
 * this process.  @now_s: Redis's clock; a partition without data gets the view of one that is empty
 * at that time.  False: the reply is none of ours, or was made with other settings. */
bool rolled_parse(const struct reply *rolled, const char *cfg, const struct retention *retention,
    int64_t now_s, struct partition_view *ret);

#endif
