/* deletion_record.h - the record of a deletion that is not over: a field of t:{0}:deletions.
 *
 * Layer: storage, pure.  Thread-safe: no state.
 *
 *     field   <site>               everything of the site
 *             <site>\n=<page>      one page of it
 *             <site>\n^<prefix>    all pages that begin so
 *     value   <id> <done> <until>  id: 16 hexadecimal digits, random.  done: how much of the
 *                                  deletion is done, in millionths.  until: events that arrive
 *                                  from this instant on are counted again, ms by Redis's clock;
 *                                  0: the instant is not known yet
 *
 * No site and no page has a '\n' in it.
 */
#ifndef STORAGE_SCHEMA_DELETION_RECORD_H
#define STORAGE_SCHEMA_DELETION_RECORD_H

#include "storage/base/compiler.h"
#include "storage/job/deletion_job.h"
#include "storage/schema/key.h"

#define DELETION_ID    16      /* bytes */
#define DELETION_VALUE 64      /* bytes that hold any value, with a NUL */
#define DELETION_DONE  1000000 /* `done` of a deletion of which nothing is left to do */

struct deletion_record {
    char id[DELETION_ID + 1];
    int64_t done; /* 0..DELETION_DONE */
    int64_t until_ms;
};

/* Write the field of a deletion to @field, in place of what was there. */
void deletion_field_print(struct key *field, const struct deletion_target *target);

/* Read the field of a deletion; *ret points into @field.  False: @field is no such field. */
bool deletion_field_parse(struct slice field, struct deletion_target *ret) MUST_CHECK;

/* Write the value of a deletion's field, with a NUL. */
void deletion_record_print(const struct deletion_record *record, char ret[static DELETION_VALUE]);

/* Read such a value.  False, with @ret untouched: @value is no such value. */
bool deletion_record_parse(struct slice value, struct deletion_record *ret) MUST_CHECK;

/* Is the deletion over at @now_ms, by Redis's clock, though its record still stands? */
static inline bool deletion_is_over(const struct deletion_record *record, int64_t now_ms)
{
    return record->until_ms != 0 && now_ms >= record->until_ms;
}

#endif
