/* json_value.h - one JSON value of an event or a question, and the user that it may name.
 *
 * Layer: handlers, pure.  Thread-safe: no state.
 */
#ifndef HANDLERS_TEXT_JSON_VALUE_H
#define HANDLERS_TEXT_JSON_VALUE_H

#include "handlers/text/json_scan.h"

/* A value that was taken.  A string has its text and a number its number; of any other value (a
 * container, true, false, null) the kind alone is known. */
struct json_value {
    enum scan_kind kind;
    struct slice text;
    struct json_number number;
};

/* Take a value of any kind.  False: the text is no JSON, and @scan says why. */
bool json_value_read(struct json_scan *scan, struct json_value *ret) MUST_CHECK;

/* Make @ret the user that @value names: a string, or an integer of any size, whose digits are the
 * name (42 is "42", and -0 is "0").  Returns NULL, or what is wrong (static). */
const char *json_value_user(const struct json_value *value, struct slice *ret) MUST_CHECK;

#endif
