#include "handlers/text/csv_text.h"

#include <stdbool.h>
#include <string.h>

/* Would a spreadsheet take the text for a formula?  `wide` are the full-width forms of = + - @. */
static bool is_formula(const char *text, size_t n)
{
    static const char *const wide[] = {
        "\xef\xbc\x9d", "\xef\xbc\x8b", "\xef\xbc\x8d", "\xef\xbc\xa0"};
    if (n == 0 || text[0] == '\0') {
        return false;
    }
    if (strchr("=+-@\t\r\n", text[0]) != NULL) {
        return true;
    }
    for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++) {
        if (n >= 3 && memcmp(text, wide[i], 3) == 0) {
            return true;
        }
    }
    return false;
}

static bool needs_quotes(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (text[i] != '\0' && strchr(",;\t\"\r\n", text[i]) != NULL) {
            return true;
        }
    }
    return n > 0 && (text[0] == ' ' || text[n - 1] == ' ');
}

void csv_put_text(struct buffer *out, const char *text, size_t n)
{
    bool formula = is_formula(text, n);
    bool quotes = formula || needs_quotes(text, n);
    if (quotes) {
        buffer_append(out, formula ? "\"'" : "\"", formula ? 2 : 1);
    }
    for (size_t i = 0; i < n; i++) {
        buffer_append(out, text + i, 1);
        if (text[i] == '"') {
            buffer_append(out, "\"", 1);
        }
    }
    if (quotes) {
        buffer_append(out, "\"", 1);
    }
}
