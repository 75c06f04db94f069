/* zone_file.h - a zone out of a TZif file.
 *
 * Layer: storage, pure.  Thread-safe.
 * Source: RFC 8536 (versions 1 to 3; 4 differs in leap seconds only).  Of a file of version 2 and
 * later the second block, with times of 64 bits, and the rule behind it are used.  Files that count
 * leap seconds ("right/...") are refused: our seconds, as POSIX's, have none.
 */
#ifndef STORAGE_TIME_ZONE_FILE_H
#define STORAGE_TIME_ZONE_FILE_H

#include "storage/base/slice.h"
#include "storage/time/zone.h"

#define ZONE_FILE_MAX (64 * 1024) /* bytes; the largest there is has 4 KB */

/* A zone of @name (at most ZONE_NAME_MAX bytes) from a file's @content.  NULL: *ret_fault says what
 * is wrong (static).  Free with zone_free. */
struct zone *zone_from_file(struct slice content, const char *name, const char **ret_fault);

#endif
