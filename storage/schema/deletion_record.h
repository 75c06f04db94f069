/* deletion_record.h - a deletion that was asked for and is not over: a field of t:{0}:deletions.
 *
 * Layer: storage, pure.  Thread-safe: no state.
 *
 *     field   <site>               everything of the site
 *             <site>\n=<page>      one page of it
 *             <site>\n^<prefix>    all pages that begin so
 *     value   <id> <done> <until>  16 hexadecimal digits, random; how much is done, in millionths;
 *                                  what arrives from this instant on is counted again, ms by
 *                                  Redis's clock; 0: not known yet
 *
 * No site and no page has a '\n' in it.
 */
#ifndef STORAGE_SCHEMA_DELETION_RECORD_H
#define STORAGE_SCHEMA_DELETION_RECORD_H

#include "storage/base/compiler.h"
#include "storage/job/deletion_job.h"
#include "storage/schema/key.h"

#define DELETION_ID    16 /* bytes */
#define DELETION_VALUE 64 /* bytes that hold any value, with a NUL */
#define DELETION_DONE  1000000

struct deletion_record {
    char id[DELETION_ID + 1];
    int64_t done; /* 0..DELETION_DONE */
    int64_t until_ms;
};

/* The field of a deletion. */
void deletion_field_print(struct key *field, const struct deletion_target *target);

/* Read such a field; *ret points into @field.  False: it is none. */
bool deletion_field_parse(struct slice field, struct deletion_target *ret) MUST_CHECK;

void deletion_record_print(const struct deletion_record *record, char ret[static DELETION_VALUE]);
bool deletion_record_parse(struct slice value, struct deletion_record *ret) MUST_CHECK;

/* Is the deletion over at @now_ms, by Redis's clock, though its record still stands? */
static inline bool deletion_is_over(const struct deletion_record *record, int64_t now_ms)
{
    return record->until_ms != 0 && now_ms >= record->until_ms;
}

#endif
