/* entries.h - the lines of the configuration file that have a name in them, as `site.<name>.tz`.
 *
 * Layer: service, pure.  The lines belong to struct options (values.h), in the order of the file.
 * A file may have tens of thousands of them, so an index finds a line by family and name.
 *
 * Thread safety: as the options.
 */
#ifndef SERVICE_OPTIONS_ENTRIES_H
#define SERVICE_OPTIONS_ENTRIES_H

#include <stdbool.h>

#include "service/options/option_table.h"
#include "service/options/values.h"
#include "storage/base/compiler.h"
#include "storage/base/slice.h"

/* The entry of @family with @name; *ret_new: a new one, behind the others, in which only family and
 * name are set.  The entry moves when the next one is added.  NULL: out of memory. */
struct option_entry *entries_add(struct options *options, const struct option_family *family,
    struct slice name, bool *ret_new) MUST_CHECK;

/* The entry of @family with @name; NULL: there is none. */
const struct option_entry *entries_find(
    const struct options *options, const struct option_family *family, struct slice name);

/* Free all entries. */
void entries_release(struct options *options);

#endif
