#include "service/log/log_record.h"

#include <inttypes.h>
#include <stdio.h>

#include "handlers/text/timestamp.h"
#include "service/log/escape.h"

/* Bytes kept free for `truncated=true`, the closing brace and the newline. */
#define TAIL 32

struct line {
    char *p;
    size_t n, room;
    enum log_syntax syntax;
    bool full;
};

static void put(struct line *line, const char *text, size_t n)
{
    if (line->full || n > line->room - line->n) {
        line->full = true;
        return;
    }
    memcpy(line->p + line->n, text, n);
    line->n += n;
}

static void put_string(struct line *line, const char *text)
{
    put(line, text, strlen(text));
}

static void put_key(struct line *line, const char *key)
{
    if (line->syntax == LOG_SYNTAX_JSON) {
        put_string(line, line->n > 0 ? ",\"" : "{\"");
        put_string(line, key);
        put_string(line, "\":");
    } else {
        if (line->n > 0) {
            put(line, " ", 1);
        }
        put_string(line, key);
        put(line, "=", 1);
    }
}

/* Does logfmt take @text without quotes? */
static bool is_bare(struct slice text)
{
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c <= ' ' || c >= 0x7f || c == '"' || c == '=' || c == '\\') {
            return false;
        }
    }
    return text.n > 0;
}

static void put_text(struct line *line, struct slice text)
{
    char value[LOG_VALUE_MAX];
    size_t taken, n = escape_text(text, value, sizeof(value), &taken);
    bool quoted = line->syntax == LOG_SYNTAX_JSON || !is_bare(text);
    if (quoted) {
        put(line, "\"", 1);
    }
    put(line, value, n);
    if (taken < text.n) {
        put_string(line, "...");
    }
    if (quoted) {
        put(line, "\"", 1);
    }
}

static void put_value(struct line *line, const struct log_field *field)
{
    char number[32];
    switch (field->type) {
    case LOG_TEXT:
        put_text(line, field->value.text);
        return;
    case LOG_INT:
        (void)snprintf(number, sizeof(number), "%" PRId64, field->value.i);
        break;
    case LOG_UINT:
        (void)snprintf(number, sizeof(number), "%" PRIu64, field->value.u);
        break;
    case LOG_BOOL:
        (void)snprintf(number, sizeof(number), "%s", field->value.b ? "true" : "false");
        break;
    }
    put_string(line, number);
}

/* Write a field whole or not at all. */
static void put_field(struct line *line, const struct log_field *field)
{
    size_t start = line->n;
    put_key(line, field->key);
    put_value(line, field);
    if (line->full) {
        line->n = start;
    }
}

/* Write the time as RFC 3339, in UTC with milliseconds, for the years 0 to 9999. */
static void put_time(struct line *line, int64_t at_ms)
{
    int64_t ms = (at_ms % 1000 + 1000) % 1000;
    char seconds[TIMESTAMP_TEXT], text[TIMESTAMP_TEXT + 16];
    timestamp_print((at_ms - ms) / 1000, seconds);
    (void)snprintf(text, sizeof(text), "%.19s.%03dZ", seconds, (int)ms);
    put_key(line, "ts");
    put_text(line, slice_of(text));
}

size_t log_record_print(const struct log_record *record, enum log_syntax syntax, char *text)
{
    static const char *const levels[] = {"error", "warn", "info", "debug"};
    struct line line = {.p = text, .room = LOG_RECORD_MAX - TAIL, .syntax = syntax};
    struct log_field level = log_text("level", levels[record->level]);
    struct log_field message = log_text("msg", record->message);
    struct log_field suppressed = log_uint("suppressed", record->suppressed);
    put_time(&line, record->at_ms);
    put_field(&line, &level);
    put_field(&line, &message);
    if (record->suppressed > 0) {
        put_field(&line, &suppressed);
    }
    for (size_t i = 0; i < record->n_fields && !line.full; i++) {
        put_field(&line, &record->fields[i]);
    }
    line.room = LOG_RECORD_MAX;
    if (line.full) {
        struct log_field truncated = log_bool("truncated", true);
        line.full = false;
        put_field(&line, &truncated);
    }
    put_string(&line, syntax == LOG_SYNTAX_JSON ? "}\n" : "\n");
    return line.n;
}
