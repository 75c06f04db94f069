#include "handlers/text/json_value.h"

#include "handlers/text/check.h"

bool json_value_read(struct json_scan *scan, struct json_value *ret)
{
    ret->kind = json_scan_peek(scan);
    if (ret->kind == SCAN_STRING) {
        return json_scan_string(scan, &ret->text);
    }
    if (ret->kind == SCAN_NUMBER) {
        return json_scan_number(scan, &ret->number);
    }
    return json_scan_skip(scan);
}

const char *json_value_user(const struct json_value *value, struct slice *ret)
{
    if (value->kind == SCAN_STRING) {
        *ret = value->text;
        return event_check_user(*ret);
    }
    if (value->kind != SCAN_NUMBER) {
        return "user must be a string or an integer";
    }
    if (!value->number.integer) {
        return "user as a number must be an integer, without fraction and exponent";
    }
    *ret = slice_equal(value->number.text, SLICE("-0")) ? SLICE("0") : value->number.text;
    return event_check_user(*ret);
}
