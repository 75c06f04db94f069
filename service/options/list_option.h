/* list_option.h - options that are lists with commas between: --trusted-proxies, --cors-origins.
 *
 * Layer: service, pure.  Thread-safe.  Blanks around an entry do not count; an empty text is the
 * empty list, an empty entry is wrong.
 */
#ifndef SERVICE_OPTIONS_LIST_OPTION_H
#define SERVICE_OPTIONS_LIST_OPTION_H

#include <stddef.h>

#include "handlers/text/network.h"
#include "storage/base/slice.h"

/* NULL, or what is wrong (static). */
const char *list_option_check_networks(const char *text);
const char *list_option_check_origins(const char *text);

/* The entries of a text that was checked, in one block; NULL if memory is out. */
struct network *list_option_networks(const char *text, size_t *ret_n);

/* The same; they point into @text. */
struct slice *list_option_origins(const char *text, size_t *ret_n);

#endif
