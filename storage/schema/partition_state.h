/* partition_state.h - the state of a partition: the hash t:{p}:state, as a value.
 *
 * Layer: storage, pure.  Thread-safe: no state.
 *
 * Every reply about a partition's data brings the fields of this hash along:
 *
 *     st           which buckets may be read (time/closed.h)
 *     cfg          with which settings the data was made (settings.h)
 *     kept         how long the buckets are kept (settings.h)
 *     ver, over, fold    ids: what was read while an id was the same is still true
 */
#ifndef STORAGE_SCHEMA_PARTITION_STATE_H
#define STORAGE_SCHEMA_PARTITION_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/buffer.h"
#include "storage/base/compiler.h"
#include "storage/redis/reply.h"
#include "storage/time/closed.h"

/* A random id that Redis keeps.  n 0: there is none, and nothing may be remembered. */
#define VER_MAX 63
struct ver {
    uint8_t n;
    char text[VER_MAX];
};

bool ver_equal(const struct ver *a, const struct ver *b);

/* A hash of an id, XXH3, to be kept in place of it: ids are random, so nobody chooses what is
 * hashed.  0: there is no id. */
uint64_t ver_hash(const struct ver *ver);

/* What was last seen of a partition.  A view may be old: each reading lets Redis prove it. */
struct partition_view {
    bool known; /* false: nothing was read yet, or the partition is empty */
    struct rollup_state state;
    struct retention retention;
    struct ver ver; /* a hint: the next reply proves what is remembered under it */

    /* Minutes that end at or before over_s have changed only if `over` has changed.  over.n 0:
     * nothing is known of any minute. */
    struct ver over;
    int64_t over_s;
    struct ver fold; /* minutes of open hours have changed only if the id has; n 0: not known */
    /* The reply before had the same id, so the next one is likely to have it. */
    bool ver_held, over_held, fold_held;
    int64_t seen_ms; /* when this was learnt, CLOCK_MONOTONIC */
};

/* Append a command that asks for the fields of a view, and for @more fields whose names the caller
 * appends as words.  @tag is the partition's.  The reply has STATE_FIELDS + @more items. */
#define STATE_FIELDS 6
void partition_state_ask(struct buffer *out, const char *tag, size_t more);

/* The instant in the field `over`, UTC seconds: see struct partition_view.  0: there is none. */
int64_t partition_over_s(const struct reply *over);

/* Read a view from a reply of STATE_FIELDS items.  @cfg and @retention are the settings of this
 * process.  @now_s is Redis's clock: a partition without data gets the state of one that is empty
 * at that time.  False, with @ret untouched: the reply does not have these items, or the data was
 * made with other settings. */
bool partition_state_parse(const struct reply *fields, const char *cfg,
    const struct retention *retention, int64_t now_s, struct partition_view *ret) MUST_CHECK;

/* Append a command that asks for the ids alone.  The reply has PROOF_FIELDS items. */
#define PROOF_FIELDS 3
void partition_proof_ask(struct buffer *out, const char *tag);

/* Does a reply of PROOF_FIELDS items have the ids of @before?  False as long as @before has no
 * `ver`. */
bool partition_proof_same(const struct reply *fields, const struct partition_view *before);

/* Read a reply of PROOF_FIELDS items about a partition of which @before is known.  True: `ver` is
 * the same, so for readers only the other two ids can have changed, and *ret is the partition's
 * view.  The step that closes a bucket for readers, or changes settings, sets another `ver`.
 * False: `ver` is another one, or the reply has another form. */
bool partition_proof_take(const struct reply *fields, const struct partition_view *before,
    struct partition_view *ret) MUST_CHECK;

#endif
