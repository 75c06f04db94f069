/* settings.h - the settings that belong to the data, as text.
 *
 * Layer: storage, pure.  Thread-safe.
 *
 * Some settings decide how the data lies in Redis: the version of the schema, the number of
 * partitions, how long each level is kept, the zones of the sites.  All processes must have the
 * same settings.  So each partition keeps them as a text in field `cfg` of t:{p}:state, and every
 * fold and every script compares that text with the caller's.  The text also names the data set
 * (schema/identity.h), so that data of another installation is told from one's own.  Field `kept`
 * remembers keep times that were shorter before.
 */
#ifndef STORAGE_SCHEMA_SETTINGS_H
#define STORAGE_SCHEMA_SETTINGS_H

#include "storage/base/compiler.h"
#include "storage/time/closed.h"

#define SETTINGS_TEXT 192 /* bytes that hold any of these texts and a NUL */

/* Write the text of cfg, such as "schema=8 partitions=16 keep=172800,5356800,95040000,-": the keep
 * times of minutes, hours, days and months in seconds, '-' for ever.  If @zones_digest
 * (site_zones_digest()) is not 0, " zones=0123456789abcdef" follows.  settings_put_set() makes the
 * text whole. */
void settings_print(unsigned partitions, const struct retention *retention, uint64_t zones_digest,
    char text[SETTINGS_TEXT]);

/* Append the id of the data set to the text: " set=0123456789abcdef". */
void settings_put_set(char text[SETTINGS_TEXT], uint64_t set);

/* Read the keep times and the data set from a text of cfg, whatever its zones.  False, with @ret
 * and @ret_set untouched: @text is no such text, or of another schema or number of partitions. */
bool settings_parse(
    struct slice text, unsigned partitions, struct retention *ret, uint64_t *ret_set) MUST_CHECK;

/* Read the data set alone from a text of cfg, whatever else it says.  False, with @ret untouched:
 * the text names no data set. */
bool settings_set(struct slice text, uint64_t *ret) MUST_CHECK;

/* Write the text of kept: until_s and before_s of each level, with blanks between; '-' for ever. */
void kept_print(const struct retention *retention, char text[SETTINGS_TEXT]);

/* Read a text of kept into until_s and before_s of @ret; keep_s stays.  False, with @ret untouched:
 * @text is no such text. */
bool kept_parse(struct slice text, struct retention *ret) MUST_CHECK;

/* The retention of a partition with @state after its keep times changed from @old to @new_times.
 * Where a time becomes longer, buckets whose expiry is set keep the old one. */
struct retention retention_changed(const struct retention *old, const struct retention *new_times,
    const struct rollup_state *state);

#endif
