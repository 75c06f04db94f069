/* option_value.h - parse and print the values of options: switches, numbers, sizes and durations.
 *
 * Layer: service, pure.  Thread-safe.
 * A number has decimal digits, and no sign, blank or fraction.  A size is a number of bytes, or a
 * number with a unit: KiB, MiB, GiB, TiB.  A duration always has a unit: ms, s, m, h, d.  So a
 * reader never has to know which unit is meant.
 */
#ifndef SERVICE_OPTIONS_OPTION_VALUE_H
#define SERVICE_OPTIONS_OPTION_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/compiler.h"

#define OPTION_VALUE_TEXT 32 /* bytes that hold any formatted value and a NUL */

/* Each parser returns false for any other text, and for a result above INT64_MAX.  *ret is
 * untouched then. */
bool option_parse_bool(const char *text, bool *ret) MUST_CHECK; /* on, off, true, false */
bool option_parse_integer(const char *text, int64_t *ret) MUST_CHECK;
bool option_parse_size(const char *text, int64_t *ret_bytes) MUST_CHECK;
bool option_parse_duration(const char *text, int64_t *ret_ms) MUST_CHECK;
bool option_parse_rate(const char *text, double *ret) MUST_CHECK; /* digits and a point: 0.01 */

/* Print with the largest unit that leaves a whole number.  @text has OPTION_VALUE_TEXT bytes and is
 * returned. */
const char *option_format_integer(int64_t value, char *text);
const char *option_format_size(int64_t bytes, char *text);
const char *option_format_duration(int64_t ms, char *text);

#endif
