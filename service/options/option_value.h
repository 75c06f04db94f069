/* option_value.h - the texts of option values: switches, numbers, sizes and durations.
 *
 * Layer: service, pure.  Thread-safe.
 * Numbers are decimal digits without sign, blanks or fraction.  A size is a number of bytes or has
 * a unit (KiB, MiB, GiB, TiB); a duration always has one (ms, s, m, h, d), so that nobody has to
 * know which is meant.
 */
#ifndef SERVICE_OPTIONS_OPTION_VALUE_H
#define SERVICE_OPTIONS_OPTION_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#define OPTION_VALUE_TEXT 32 /* bytes that hold any formatted value and a NUL */

/* All are false, with *ret untouched, for anything else, a result above INT64_MAX included. */
bool option_parse_bool(const char *text, bool *ret); /* on, off, true, false */
bool option_parse_integer(const char *text, int64_t *ret);
bool option_parse_size(const char *text, int64_t *ret_bytes);
bool option_parse_duration(const char *text, int64_t *ret_ms);

bool option_parse_rate(const char *text, double *ret); /* digits with a point: 0.01 */

/* With the largest unit that leaves a whole number.  @text holds OPTION_VALUE_TEXT bytes and is
 * returned. */
const char *option_format_integer(int64_t value, char *text);
const char *option_format_size(int64_t bytes, char *text);
const char *option_format_duration(int64_t ms, char *text);

#endif
