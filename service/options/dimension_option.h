/* dimension_option.h - parse options about dimensions: which are counted, and a site's properties.
 *
 * Layer: service, pure.  Thread-safe.  Commas stand between the entries of a list, and blanks
 * around an entry do not count.  An empty text is the empty list; an empty entry is a fault.
 */
#ifndef SERVICE_OPTIONS_DIMENSION_OPTION_H
#define SERVICE_OPTIONS_DIMENSION_OPTION_H

#include <stdint.h>

#include "storage/base/compiler.h"

/* Read names of dimensions into @ret, bits 1 << enum dimension; `off` alone is none of them.  NULL,
 * or what is wrong, a static text. */
const char *dimension_option_parse(const char *text, uint16_t *ret) MUST_CHECK;
const char *dimension_option_check(const char *text) MUST_CHECK;

/* NULL, or what is wrong with a site's list of properties. */
const char *dimension_option_check_props(const char *text) MUST_CHECK;

/* NULL, or what is wrong with a list of hosts that are no source. */
const char *dimension_option_check_hosts(const char *text) MUST_CHECK;

/* NULL, or what is wrong with the name of a header field. */
const char *dimension_option_check_header(const char *text) MUST_CHECK;

#endif
