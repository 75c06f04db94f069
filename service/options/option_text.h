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

/* Write what @option allows, which has refused the value @refused, cut to @room bytes. */
void option_describe(const struct option *option, const char *refused, char *text, size_t room);

/* Write @value, a value of @option, fit to be shown: escaped, and without passwords.  Cut to @room
 * bytes. */
void option_show(const struct option *option, const char *value, char *text, size_t room);

#endif
