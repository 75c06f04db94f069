#include "service/options/option_value.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handlers/text/plain.h"

struct unit {
    const char *name;
    int64_t factor;
};

/* The units that a value may have, from small to large; NULL ends them. */
static const struct unit number_units[] = {{"", 1}, {NULL, 0}};
static const struct unit size_units[] = {
    {"", 1},
    {"KiB", INT64_C(1) << 10},
    {"MiB", INT64_C(1) << 20},
    {"GiB", INT64_C(1) << 30},
    {"TiB", INT64_C(1) << 40},
    {NULL, 0},
};
static const struct unit duration_units[] = {
    {"ms", 1},
    {"s", 1000},
    {"m", INT64_C(60000)},
    {"h", INT64_C(3600000)},
    {"d", INT64_C(86400000)},
    {NULL, 0},
};

static bool parse(const char *text, const struct unit *units, int64_t *ret)
{
    size_t n = strspn(text, "0123456789");
    uint64_t value;
    int64_t product;
    if (!text_number((struct slice){text, n}, INT64_MAX, &value)) {
        return false;
    }
    for (const struct unit *unit = units; unit->name != NULL; unit++) {
        if (strcmp(text + n, unit->name) == 0 &&
            !__builtin_mul_overflow((int64_t)value, unit->factor, &product)) {
            *ret = product;
            return true;
        }
    }
    return false;
}

static const char *format(int64_t value, const struct unit *units, char *text)
{
    const struct unit *best = units;
    for (const struct unit *unit = units; unit->name != NULL; unit++) {
        if (value != 0 && value % unit->factor == 0) {
            best = unit;
        }
    }
    (void)snprintf(text, OPTION_VALUE_TEXT, "%" PRId64 "%s", value / best->factor, best->name);
    return text;
}

bool option_parse_bool(const char *text, bool *ret)
{
    bool on = strcmp(text, "on") == 0 || strcmp(text, "true") == 0;
    if (!on && strcmp(text, "off") != 0 && strcmp(text, "false") != 0) {
        return false;
    }
    *ret = on;
    return true;
}

bool option_parse_integer(const char *text, int64_t *ret)
{
    return parse(text, number_units, ret);
}

bool option_parse_size(const char *text, int64_t *ret_bytes)
{
    return parse(text, size_units, ret_bytes);
}

bool option_parse_duration(const char *text, int64_t *ret_ms)
{
    return parse(text, duration_units, ret_ms);
}

bool option_parse_rate(const char *text, double *ret)
{
    if (text[0] == '\0' || strspn(text, "0123456789.") != strlen(text)) {
        return false;
    }
    char *end;
    double value = strtod(text, &end); /* the program never leaves the C locale */
    if (*end != '\0') {
        return false;
    }
    *ret = value;
    return true;
}

const char *option_format_integer(int64_t value, char *text)
{
    return format(value, number_units, text);
}

const char *option_format_size(int64_t bytes, char *text)
{
    return format(bytes, size_units, text);
}

const char *option_format_duration(int64_t ms, char *text)
{
    return format(ms, ms == 0 ? &duration_units[1] : duration_units, text); /* 0 is "0s" */
}
