/* zone_file.h - reads a time zone out of a file of the system's zone database.
 *
 * Layer: storage, pure: the caller has read the bytes.  Thread-safe.
 *
 * Format: TZif, RFC 8536, versions 1 to 4.  A file of version 2 or later holds two blocks; the
 * second one, with times of 64 bits, is used, and the rule behind it.  A file that counts leap
 * seconds ("right/...") is refused, because the seconds of POSIX have none.  The bytes are not
 * trusted.
 */
#ifndef STORAGE_TIME_ZONE_FILE_H
#define STORAGE_TIME_ZONE_FILE_H

#include "storage/base/slice.h"
#include "storage/time/zone.h"

#define ZONE_FILE_MAX (64 * 1024) /* bytes; the largest file that is known has 4 KB */

/* Make a zone of @name (at most ZONE_NAME_MAX bytes) from a file's @content.  Free it with
 * zone_free.  NULL: *ret_fault says what is wrong, a static text. */
struct zone *zone_from_file(
    struct slice content, const char *name, const char **ret_fault) MUST_CHECK;

#endif
