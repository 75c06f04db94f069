/* list_option.h - parse options that are lists, as --trusted-proxies and --cors-origins.
 *
 * Layer: service, pure.  Thread-safe.  Commas stand between the entries of a list, and blanks
 * around an entry do not count.  An empty text is the empty list.  An empty entry is a fault,
 * except behind a last comma.
 */
#ifndef SERVICE_OPTIONS_LIST_OPTION_H
#define SERVICE_OPTIONS_LIST_OPTION_H

#include <stddef.h>

#include "handlers/text/network.h"
#include "storage/base/compiler.h"
#include "storage/base/slice.h"

/* Cut the next entry and its comma off @rest, which is not empty. */
struct slice list_option_take(struct slice *rest);

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
