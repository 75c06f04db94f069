/* settings.h - the settings that belong to the data, as text: fields cfg and kept of t:{p}:rolled,
 * and meta.
 *
 * Layer: storage, pure.  Thread-safe.
 */
#ifndef STORAGE_SCHEMA_SETTINGS_H
#define STORAGE_SCHEMA_SETTINGS_H

#include "storage/time/closed.h"

#define SETTINGS_TEXT 192

/* "schema=1 partitions=16 keep=172800,5356800,95040000,-": compared by every script as a whole.
 * @zones_digest (site_zones_digest) other than 0 stands behind it: " zones=0123456789abcdef". */
void settings_print(unsigned partitions, const struct retention *retention, uint64_t zones_digest,
    char text[SETTINGS_TEXT]);

/* The keep times of such a text, whatever its zones.  False: not one of ours, or of another schema
 * or number of partitions. */
bool settings_parse(struct slice text, unsigned partitions, struct retention *ret);

/* kept: "until before" per level, blanks between; times in seconds, '-' for forever. */
void kept_print(const struct retention *retention, char text[SETTINGS_TEXT]);
bool kept_parse(struct slice text, struct retention *ret);

/* The retention after a change from @old to @new keep times in a partition with @state. */
struct retention retention_changed(const struct retention *old, const struct retention *new_times,
    const struct rollup_state *state);

#endif
