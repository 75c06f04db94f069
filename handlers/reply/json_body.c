#include "handlers/reply/json_body.h"

#include "handlers/reply/json_memory.h"
#include "handlers/reply/problem.h"
#include "handlers/text/plain.h"

/* A value takes up to 300 bytes in a tree, however few bytes it has in the text: 8 MiB of "[],"
 * become 360 MB.  No body that is read here needs a tenth of these values. */
#define VALUES_MAX 20000

/* Has @body more values than VALUES_MAX?  Each value stands behind a comma, or is the first of an
 * array or an object.  Values are counted as far as jansson would read, which stops where the
 * nesting is too deep. */
static bool has_too_many_values(struct slice body)
{
    size_t values = 1;
    size_t depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < body.n && values <= VALUES_MAX && depth <= JSON_PARSER_MAX_DEPTH; i++) {
        char c = body.p[i];
        if (c == '"') {
            in_string = !in_string;
        } else if (in_string) {
            i += c == '\\' ? 1 : 0;
        } else if (c == '[' || c == '{') {
            values++;
            depth++;
        } else if (c == ',') {
            values++;
        } else if ((c == ']' || c == '}') && depth > 0) {
            depth--;
        }
    }
    return values > VALUES_MAX;
}

/* What is wrong, in words of our own: jansson's texts repeat the body and speak of jansson's flags.
 */
static const char *fault_text(const json_error_t *error)
{
    switch ((int)json_error_code(error)) {
    case json_error_duplicate_key:
        return "a member is given twice";
    case json_error_numeric_overflow:
        return "a number is too large";
    case json_error_invalid_utf8:
        return "not valid UTF-8";
    case json_error_stack_overflow:
        return "nested too deeply";
    case json_error_null_character:
    case json_error_null_byte_in_key:
        return "\\u0000 is not allowed";
    default:
        return "not JSON";
    }
}

/* Make integers of the reals in @value that are whole, as far as a double is exact.  An integer
 * beyond 64 bits makes jansson refuse the document.  But the document is JSON, and the client must
 * be told of a value out of range.  So all numbers were read as reals.  Returns a new reference. */
static json_t *integers_again(json_t *value)
{
    double real = json_real_value(value);
    const char *name;
    json_t *member;
    size_t i;
    if (json_is_real(value) && real > -9e15 && real < 9e15 && real == (double)(json_int_t)real) {
        return json_integer((json_int_t)real);
    }
    json_object_foreach(value, name, member)
    {
        (void)json_object_set_new(value, name, integers_again(member));
    }
    json_array_foreach(value, i, member)
    {
        (void)json_array_set_new(value, i, integers_again(member));
    }
    return json_incref(value);
}

json_t *json_body_load(struct slice body, size_t flags, json_error_t *ret_error)
{
    const char *text = body.n == 0 ? "" : body.p;
    json_t *root = json_loadb(text, body.n, flags, ret_error);
    if (root == NULL && json_error_code(ret_error) == json_error_numeric_overflow) {
        json_t *reals = json_loadb(text, body.n, flags | JSON_DECODE_INT_AS_REAL, ret_error);
        root = integers_again(reals);
        json_decref(reals);
    }
    return root;
}

json_t *json_body_read(struct http_exchange *exchange, size_t flags)
{
    json_error_t error;
    if (has_too_many_values(exchange->request.body)) {
        problem_reply(&exchange->response, PROBLEM_TOO_LARGE,
            "the body holds more than %d values, which nothing here takes", VALUES_MAX);
        return NULL;
    }
    json_t *root = json_body_load(exchange->request.body, flags | JSON_DECODE_ANY, &error);
    if (json_memory_failed()) { /* without memory jansson loses a byte of a text and goes on */
        json_decref(root);
        root = NULL;
        (void)problem_no_memory(&exchange->response);
    } else if (root == NULL) {
        problem_reply(&exchange->response, PROBLEM_MALFORMED, "line %d, column %d: %s",
            error.line < 1 ? 1 : error.line, error.column < 1 ? 1 : error.column,
            fault_text(&error));
    }
    return root;
}

bool json_body_type(struct http_exchange *exchange, bool or_text)
{
    struct slice type = exchange->request.fields[FIELD_CONTENT_TYPE];
    if (type.n == 0 || text_is_media_type(type, "application/json") ||
        (or_text && text_is_media_type(type, "text/plain"))) {
        return true;
    }
    problem_reply(&exchange->response, PROBLEM_MEDIA_TYPE, "Content-Type must be %s",
        or_text ? "application/json or text/plain" : "application/json");
    return false;
}
