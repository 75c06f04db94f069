/* dimension_option.h - parse options about dimensions: which are counted, and a site's properties.
 *
 * Layer: service, pure.  Thread-safe.  Commas stand between the entries of a list, and blanks
 * around an entry do not count.  An empty text is the empty list.  An empty entry is a fault.
 */
#ifndef SERVICE_OPTIONS_DIMENSION_OPTION_H
#define SERVICE_OPTIONS_DIMENSION_OPTION_H

#include <stdint.h>

#include "storage/base/compiler.h"

/* Read names of dimensions into *ret, as bits 1 << enum dimension; `off` alone means none.  NULL,
 * or what is allowed, a static text; then *ret is of no use. */
const char *dimension_option_parse(const char *text, uint16_t *ret) MUST_CHECK;
const char *dimension_option_check(const char *text) MUST_CHECK; /* the same, without *ret */

/* Check a site's list of properties.  NULL, or what is allowed, a static text. */
const char *dimension_option_check_props(const char *text) MUST_CHECK;

/* Check a list of hosts that are no source.  NULL, or what is allowed, a static text. */
const char *dimension_option_check_hosts(const char *text) MUST_CHECK;

/* Check the name of a header field.  NULL, or what is allowed, a static text. */
const char *dimension_option_check_header(const char *text) MUST_CHECK;

#endif
