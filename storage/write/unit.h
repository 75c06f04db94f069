/* unit.h - a request with an Idempotency-Key as it travels in a flush.
 *
 * Layer: storage, pure.  Belongs to the writer's thread.
 *
 * A unit's tasks in one partition have an order that every attempt, in every process, comes to:
 * that of its events, and for each event page, site, visit.  Its marker in the partition says how
 * many of them were applied, the first ones; so attempts may cut them into parts as they like.  A
 * script applies the tasks [from, to) only where the marker says `from` (no marker: 0).  Where it
 * says something else the script does nothing at all and tells; the part is then encoded again
 * without what is there already.
 */
#ifndef STORAGE_WRITE_UNIT_H
#define STORAGE_WRITE_UNIT_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/buffer.h"
#include "storage/job/claim.h"
#include "storage/schema/partition.h"

struct unit {
    struct claim_digest key, body;
    int64_t gen_ms, until_ms;
    bool direct;         /* (see claim.h) and its record, as claim.lua and settle.lua know it */
    struct slice record; /* in the flush's memory */
};

enum unit_mark {
    UNIT_OPEN,   /* as far as is known it is to be applied */
    UNIT_KNOWN,  /* all its tasks here were applied before */
    UNIT_BEHIND, /* tasks before those are missing: nothing may be applied */
    UNIT_OTHER,  /* the marker is another body's */
    UNIT_LATE,   /* the attempt is too old */
    UNIT_DIRECT, /* it has no marker: the whole script goes with its record, or not */
    UNIT_GONE,   /* it was direct, and takes the other way now: not applied from here any more */
};

/* A unit in a part. */
struct part_unit {
    uint32_t unit;    /* its number in the flush, from 1 */
    uint32_t from, n; /* its tasks here: [from, from + n) of those in the partition */
    uint32_t skip;    /* so many of those were applied before */
    enum unit_mark mark;
};

/* What write.lua says of the units of a part: "number what" in pairs, blanks between; what is how
 * many tasks the marker counts, or O, L.  False: not one of its answers. */
bool part_units_take(struct part_unit *units, uint32_t n, struct slice text);

/* Nothing is known any more: the data may have gone back. */
void part_units_forget(struct part_unit *units, uint32_t n);

/* Set the mark of @unit, if it is among @units. */
void part_units_set(struct part_unit *units, uint32_t n, uint32_t unit, enum unit_mark mark);

/* The mark of @unit among @units; UNIT_OPEN if it is none of them. */
enum unit_mark part_units_mark(const struct part_unit *units, uint32_t n, uint32_t unit);

/* Does @row_unit's next task belong into the script?  To be asked for each task of the part in
 * order, with a zeroed cursor at first. */
struct unit_cursor {
    uint32_t at, task;
};
bool part_units_pass(
    const struct part_unit *units, uint32_t n, struct unit_cursor *cursor, uint32_t row_unit);

/* Write the section "units" of write.lua for those that are open, as RESP words.  @homes: where
 * their claims lie; NULL if that may be another node. */
void part_units_write(const struct part_unit *units, uint32_t n, const struct unit *all,
    const char *tag, const struct partitions *homes, struct buffer *keys, size_t *n_keys,
    struct buffer *args, size_t *n_args);

#endif
