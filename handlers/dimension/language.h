/* language.h - the language of a visitor, and the code of a country.
 *
 * Layer: handlers, pure.  Thread-safe: no state.
 */
#ifndef HANDLERS_DIMENSION_LANGUAGE_H
#define HANDLERS_DIMENSION_LANGUAGE_H

#include <stdbool.h>

#include "storage/base/compiler.h"
#include "storage/base/slice.h"

#define LANGUAGE_MAX 3 /* bytes */

/* Read the language that comes first in @text, a tag such as "de-AT" or the value of
 * Accept-Language.  *ret is its primary subtag (RFC 5646 section 2.2.1), two or three letters in
 * lower case, in @to, which has room for LANGUAGE_MAX bytes.  False: there is none. */
bool language_read(struct slice text, char *to, struct slice *ret) MUST_CHECK;

#define COUNTRY_SIZE 2 /* bytes */

/* Read @text as a code of ISO 3166-1 alpha-2.  *ret is the code in upper case, in @to, which has
 * room for COUNTRY_SIZE bytes.  False: @text is not two letters. */
bool country_read(struct slice text, char *to, struct slice *ret) MUST_CHECK;

#endif
