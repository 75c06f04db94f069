/* log_record.h - write one log record as one line of text, in logfmt or JSON.
 *
 * Layer: service, pure: no clock, no I/O, no allocation.  Thread-safe.
 *
 * A line never exceeds LOG_RECORD_MAX bytes, so that one write(2) of the line to a pipe is atomic
 * (PIPE_BUF).  An escaped value of more than LOG_VALUE_MAX bytes is cut and ends in "...".  Fields
 * that do not fit into the line are left out, and `truncated=true` says so.
 */
#ifndef SERVICE_LOG_LOG_RECORD_H
#define SERVICE_LOG_LOG_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/slice.h"

#define LOG_RECORD_MAX 4096
#define LOG_VALUE_MAX  1024

/* Order and names are those of --log-format and --log-level. */
enum log_syntax { LOG_SYNTAX_LOGFMT, LOG_SYNTAX_JSON };
enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* A key, which is a literal of [a-z0-9_], and a value.  Texts live until the record is written. */
struct log_field {
    const char *key;
    enum log_type { LOG_TEXT, LOG_INT, LOG_UINT, LOG_BOOL } type;
    union {
        struct slice text;
        int64_t i;
        uint64_t u;
        bool b;
    } value;
};

/* These functions make a field.  A text that is NULL is written as an empty one. */
static inline struct log_field log_text(const char *key, const char *text)
{
    return (struct log_field){key, LOG_TEXT, {.text = slice_of(text != NULL ? text : "")}};
}

static inline struct log_field log_slice(const char *key, struct slice text)
{
    return (struct log_field){key, LOG_TEXT, {.text = text}};
}

static inline struct log_field log_int(const char *key, int64_t value)
{
    return (struct log_field){key, LOG_INT, {.i = value}};
}

static inline struct log_field log_uint(const char *key, uint64_t value)
{
    return (struct log_field){key, LOG_UINT, {.u = value}};
}

static inline struct log_field log_bool(const char *key, bool value)
{
    return (struct log_field){key, LOG_BOOL, {.b = value}};
}

struct log_record {
    int64_t at_ms; /* UTC */
    enum log_level level;
    const char *message;
    const struct log_field *fields;
    size_t n_fields;
    uint64_t suppressed; /* records of this message left out before; 0 is not written */
};

/* Write @record and a newline, without a NUL, to @line, which has LOG_RECORD_MAX bytes.  Returns
 * how many bytes were written. */
size_t log_record_print(const struct log_record *record, enum log_syntax syntax, char *line);

#endif
