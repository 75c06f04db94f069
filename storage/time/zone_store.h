/* zone_store.h - the time zones of the system by name, each read once.
 *
 * Layer: storage.  Thread-safe: a lock of its own guards the store.
 *
 * The zones are files below the directory that TZDIR names, else below /usr/share/zoneinfo.  A zone
 * stays as it was read until the store is freed, so a pointer to a zone stays good.  New zone data
 * on the machine takes effect with the next start.
 */
#ifndef STORAGE_TIME_ZONE_STORE_H
#define STORAGE_TIME_ZONE_STORE_H

#include "storage/base/slice.h"
#include "storage/time/zone.h"

struct zone_store;

/* Make an empty store.  @directory is copied; NULL means the system's.  NULL: out of memory. */
struct zone_store *zone_store_new(const char *directory) MUST_CHECK;
void zone_store_free(struct zone_store *store); /* NULL is harmless */

/* The zone of @name, owned by the store.  May read a file; "UTC" needs none.  NULL: *ret_fault says
 * what is wrong with the name, the file or the system, a static text.  Otherwise *ret_fault is
 * untouched. */
const struct zone *zone_store_get(
    struct zone_store *store, struct slice name, const char **ret_fault);

/* Is @name a possible name of a zone?  Its parts have letters, digits, '_', '+' and '-', with a
 * slash between two parts.  So a name cannot lead out of the directory.  "localtime" and
 * "posixrules" are refused, because they are other zones on other machines. */
bool zone_name_is_valid(struct slice name);

#endif
