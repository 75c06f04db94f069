/* list_option.h - parse options that are lists, as --trusted-proxies and --cors-origins.
 *
 * Layer: service, pure.  Thread-safe.  Commas stand between the entries of a list, and blanks
 * around an entry do not count.  An empty text is the empty list.  An empty entry is a fault.
 */
#ifndef SERVICE_OPTIONS_LIST_OPTION_H
#define SERVICE_OPTIONS_LIST_OPTION_H

#include <stdbool.h>
#include <stddef.h>

#include "handlers/text/network.h"
#include "storage/base/compiler.h"
#include "storage/base/slice.h"

/* The list @text, of which list_option_take() takes the entries. */
struct slice list_option_begin(const char *text);

/* Cut the next entry and its comma off @rest.  Behind a last comma there is an empty entry.
 * False: there is no entry left, and *ret is untouched. */
bool list_option_take(struct slice *rest, struct slice *ret);

/* Check a list.  NULL, or a static text: what is wrong with networks, what is allowed of
 * origins. */
const char *list_option_check_networks(const char *text) MUST_CHECK;
const char *list_option_check_origins(const char *text) MUST_CHECK;
const char *list_option_check_site_origins(const char *text) MUST_CHECK; /* without "*" */

/* The *ret_n entries of a checked text.  The caller frees the array.  NULL: out of memory. */
struct network *list_option_networks(const char *text, size_t *ret_n) MUST_CHECK;

/* The same for texts, but the entries point into @text, which must outlive them. */
struct slice *list_option_texts(const char *text, size_t *ret_n) MUST_CHECK;

#endif
