#include "handlers/text/json_scan.h"

#include "handlers/text/ascii.h"
#include "handlers/text/json_text.h"

void json_scan_init(struct json_scan *scan, char *text, size_t n, unsigned depth_max)
{
    static char none[1];
    char *start = n > 0 ? text : none; /* nothing may be added to a null pointer, not even 0 */
    *scan = (struct json_scan){
        .at = start,
        .end = start + n,
        .line_start = start,
        .line = 1,
        .depth_max = depth_max,
    };
}

bool json_scan_fail(struct json_scan *scan, const char *error)
{
    scan->error = error;
    return false;
}

void json_scan_position(const struct json_scan *scan, size_t *ret_line, size_t *ret_column)
{
    *ret_line = scan->line;
    *ret_column = (size_t)(scan->at - scan->line_start) + 1;
}

/* Skip blanks.  Returns the byte behind them, or 0 at the end.  (A NUL in the text looks like the
 * end, and is refused like it: nothing may begin with a NUL.) */
static inline char next_byte(struct json_scan *scan)
{
    for (; scan->at < scan->end; scan->at++) {
        char c = *scan->at;
        if (c == '\n') {
            scan->line++;
            scan->line_start = scan->at + 1;
        } else if (c != ' ' && c != '\t' && c != '\r') {
            return c;
        }
    }
    return 0;
}

enum scan_kind json_scan_peek(struct json_scan *scan)
{
    char c = next_byte(scan);
    switch (c) {
    case '{':
        return SCAN_OBJECT;
    case '[':
        return SCAN_ARRAY;
    case '"':
        return SCAN_STRING;
    case '-':
        return SCAN_NUMBER;
    case 't':
        return SCAN_TRUE;
    case 'f':
        return SCAN_FALSE;
    case 'n':
        return SCAN_NULL;
    default:
        break;
    }
    if (ascii_is_digit(c)) {
        return SCAN_NUMBER;
    }
    json_scan_fail(scan, "a value is expected");
    return SCAN_BAD;
}

enum scan_step json_scan_open(struct json_scan *scan, char close)
{
    if (scan->depth == scan->depth_max) {
        json_scan_fail(scan, "nested too deeply");
        return SCAN_FAILED;
    }
    scan->at++;
    if (next_byte(scan) == close) {
        scan->at++;
        return SCAN_CLOSED;
    }
    scan->depth++;
    return SCAN_ITEM;
}

enum scan_step json_scan_next(struct json_scan *scan, char close)
{
    char c = next_byte(scan);
    if (c == ',') {
        scan->at++;
        return SCAN_ITEM;
    }
    if (c == close) {
        scan->at++;
        scan->depth--;
        return SCAN_CLOSED;
    }
    json_scan_fail(scan, close == '}' ? "',' or '}' is expected" : "',' or ']' is expected");
    return SCAN_FAILED;
}

bool json_scan_name(struct json_scan *scan, struct slice *ret)
{
    if (next_byte(scan) != '"') {
        return json_scan_fail(scan, "the name of a member is expected");
    }
    if (!json_scan_string(scan, ret)) {
        return false;
    }
    if (next_byte(scan) != ':') {
        return json_scan_fail(scan, "':' is expected");
    }
    scan->at++;
    return true;
}

static bool read_string(struct json_scan *scan, char *start, char *stop, struct slice *ret)
{
    struct json_text text;
    scan->at = json_text_read(start, stop, scan->end, &text);
    if (text.error != NULL) {
        return json_scan_fail(scan, text.error);
    }
    if (scan->fault == NULL) {
        scan->fault = text.fault;
    }
    *ret = text.text;
    return true;
}

bool json_scan_string(struct json_scan *scan, struct slice *ret)
{
    char *start = scan->at + 1;
    char *stop = json_text_plain(start, scan->end);
    if (stop == scan->end || *stop != '"') {
        return read_string(scan, start, stop, ret);
    }
    *ret = (struct slice){start, (size_t)(stop - start)};
    scan->at = stop + 1;
    return true;
}

static bool is_digit(const struct json_scan *scan)
{
    return scan->at < scan->end && ascii_is_digit(*scan->at);
}

/* Take one digit or more. */
static bool take_digits(struct json_scan *scan)
{
    if (!is_digit(scan)) {
        return json_scan_fail(scan, "a digit is expected");
    }
    while (is_digit(scan)) {
        scan->at++;
    }
    return true;
}

static bool take_byte(struct json_scan *scan, char c)
{
    if (scan->at == scan->end || *scan->at != c) {
        return false;
    }
    scan->at++;
    return true;
}

bool json_scan_number(struct json_scan *scan, struct json_number *ret)
{
    const char *start = scan->at;
    ret->negative = take_byte(scan, '-');
    ret->integer = true;
    const char *digits = scan->at;
    if (!take_byte(scan, '0') && !take_digits(scan)) {
        return false;
    }
    ret->n_digits = (size_t)(scan->at - digits);
    if (is_digit(scan)) {
        return json_scan_fail(scan, "a number must not begin with 0");
    }
    if (take_byte(scan, '.')) {
        ret->integer = false;
        if (!take_digits(scan)) {
            return false;
        }
    }
    if (take_byte(scan, 'e') || take_byte(scan, 'E')) {
        ret->integer = false;
        if (!take_byte(scan, '+')) {
            take_byte(scan, '-');
        }
        if (!take_digits(scan)) {
            return false;
        }
    }
    ret->text = (struct slice){start, (size_t)(scan->at - start)};
    return true;
}

static bool skip_word(struct json_scan *scan, struct slice word)
{
    if ((size_t)(scan->end - scan->at) < word.n || memcmp(scan->at, word.p, word.n) != 0) {
        return json_scan_fail(scan, "a value is expected");
    }
    scan->at += word.n;
    return true;
}

/* Take a container.  What is nested in it is taken by recursion, which depth_max bounds. */
static bool skip_container(struct json_scan *scan, char close)
{
    enum scan_step step = json_scan_open(scan, close);
    struct slice name;
    for (; step == SCAN_ITEM; step = json_scan_next(scan, close)) {
        if (close == '}' && !json_scan_name(scan, &name)) {
            return false;
        }
        if (!json_scan_skip(scan)) {
            return false;
        }
    }
    return step == SCAN_CLOSED;
}

bool json_scan_skip(struct json_scan *scan)
{
    struct json_number number;
    struct slice text;
    switch (json_scan_peek(scan)) {
    case SCAN_OBJECT:
        return skip_container(scan, '}');
    case SCAN_ARRAY:
        return skip_container(scan, ']');
    case SCAN_STRING:
        return json_scan_string(scan, &text);
    case SCAN_NUMBER:
        return json_scan_number(scan, &number);
    case SCAN_TRUE:
        return skip_word(scan, SLICE("true"));
    case SCAN_FALSE:
        return skip_word(scan, SLICE("false"));
    case SCAN_NULL:
        return skip_word(scan, SLICE("null"));
    case SCAN_BAD:
        break;
    }
    return false;
}

bool json_scan_at_end(struct json_scan *scan)
{
    next_byte(scan);
    return scan->at == scan->end;
}

bool json_scan_finish(struct json_scan *scan)
{
    return json_scan_at_end(scan) || json_scan_fail(scan, "nothing may follow the value");
}

/* ---- the value of a number, without floating point: 1.5e9 is 1500000000 exactly ---- */

/* Reading an exponent stops here: far beyond any digit that a body can hold, and far below an
 * overflow. */
#define EXPONENT_MAX (INT64_C(1) << 40)

/* A value below this still fits into an int64_t with one digit more. */
#define CUT_MAX INT64_C(100000000000000000)

static bool is_exponent(char c)
{
    return c == 'e' || c == 'E';
}

/* Read the exponent at @p, behind the 'e'. */
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
