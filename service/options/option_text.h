/* option_text.h - the text of an option: read as its type wants it, explained, and shown.
 *
 * Layer: service.  Pure; thread-safe.
 */
#ifndef SERVICE_OPTIONS_OPTION_TEXT_H
#define SERVICE_OPTIONS_OPTION_TEXT_H

#include "service/options/option_table.h"
#include "storage/base/compiler.h"

struct options;

/* Parse @text into @option's field of @options.  A string field points to @text afterwards.  False:
 * @text is not allowed, and the field is untouched. */
bool option_set(const struct option *option, const char *text, struct options *options) MUST_CHECK;

/* Write to @text, cut to @room bytes, why @option has refused the value @refused, or what it
 * allows. */
void option_describe(const struct option *option, const char *refused, char *text, size_t room);

/* Write to @text, cut to @room bytes, @value of @option as it may be shown: escaped, and without
 * passwords. */
void option_show(const struct option *option, const char *value, char *text, size_t room);

#endif
