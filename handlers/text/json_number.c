/* What a number of JSON is worth, without floating point: 1.5e9 is 1500000000 exactly. */
#include "handlers/text/json_scan.h"

/* Far beyond any digit a body can hold, far below an overflow. */
#define EXPONENT_MAX (INT64_C(1) << 40)

/* One digit more still fits into an int64_t. */
#define CUT_MAX INT64_C(100000000000000000)

static bool is_exponent(char c)
{
    return c == 'e' || c == 'E';
}

/* The exponent at @p, which stands behind the 'e'. */
static int64_t read_exponent(const char *p, const char *end)
{
    bool negative = *p == '-';
    int64_t exponent = 0;

    if (*p == '-' || *p == '+') {
        p++;
    }
    for (; p < end && exponent < EXPONENT_MAX; p++) {
        exponent = exponent * 10 + (*p - '0');
    }
    return negative ? -exponent : exponent;
}

/* How many digits, from the first one of the mantissa, stand before the decimal point once the
 * exponent has moved it. */
static int64_t integer_places(const struct json_number *number)
{
    const char *end = number->text.p + number->text.n;
    int64_t places = (int64_t)number->n_digits;

    if (number->integer) {
        return places;
    }
    for (const char *p = number->text.p; p < end; p++) {
        if (is_exponent(*p)) {
            return places + read_exponent(p + 1, end);
        }
    }
    return places;
}

int64_t json_number_cut(const struct json_number *number)
{
    const char *p = number->text.p + (number->negative ? 1 : 0);
    const char *end = number->text.p + number->text.n;
    int64_t places = integer_places(number);
    int64_t value = 0;

    for (; p < end && !is_exponent(*p) && places > 0; p++) {
        if (*p == '.') {
            continue;
        }
        value = value * 10 + (*p - '0');
        if (value >= CUT_MAX) {
            return INT64_MAX;
        }
        places--;
    }
    for (; value > 0 && places > 0; places--) {
        value *= 10;
        if (value >= CUT_MAX) {
            return INT64_MAX;
        }
    }
    return value;
}
