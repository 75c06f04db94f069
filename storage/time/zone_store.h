/* zone_store.h - the system's zones, by name, each read once.
 *
 * Layer: storage.  Thread-safe.
 * Source: the files below TZDIR, else /usr/share/zoneinfo.  A zone stays as it was read until the
 * store is freed, so pointers to it stay good; a new tzdata takes effect with the next start.
 */
#ifndef STORAGE_TIME_ZONE_STORE_H
#define STORAGE_TIME_ZONE_STORE_H

#include "storage/base/slice.h"
#include "storage/time/zone.h"

struct zone_store;

/* @directory NULL: that of the system.  NULL: no memory. */
struct zone_store *zone_store_new(const char *directory);
void zone_store_free(struct zone_store *store);

/* The zone of @name ("UTC" needs no file).  NULL: there is none, *ret_fault says what is wrong with
 * the name, the file or the system (static text). */
const struct zone *zone_store_get(
    struct zone_store *store, struct slice name, const char **ret_fault);

/* Is it a name of a zone: parts of letters, digits, _ + -, with slashes between?  (So it names no
 * file outside of the directory.) */
bool zone_name_is_valid(struct slice name);

#endif
