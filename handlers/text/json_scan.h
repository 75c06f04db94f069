/* json_scan.h - JSON, token by token: a strict pull scanner of RFC 8259.
 *
 * Layer: handlers, pure.  A scan belongs to one thread.
 *
 * Nothing is allocated.  Strings are unescaped in place: the text is changed, and the slices that
 * are returned point into it.
 *
 * The caller knows which shape it wants, and pulls.  json_scan_peek() tells what kind of value
 * comes next, and one of the other functions takes the value.  A container is taken like this:
 *
 *     for (step = json_scan_open(scan, '}'); step == SCAN_ITEM; step = json_scan_next(scan, '}'))
 *         if (!json_scan_name(scan, &name) || !take_value(scan))
 *             break;
 *
 * Errors stick.  After the first one (false, SCAN_BAD or SCAN_FAILED) scan->error says what is
 * wrong, and json_scan_position() where; the caller pulls no more.  Text that is unusable without
 * breaking the grammar (see json_text.h) is no error.  It is noted in scan->fault, which the caller
 * clears.
 */
#ifndef HANDLERS_TEXT_JSON_SCAN_H
#define HANDLERS_TEXT_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/compiler.h"
#include "storage/base/slice.h"

enum scan_kind {
    SCAN_BAD,
    SCAN_OBJECT,
    SCAN_ARRAY,
    SCAN_STRING,
    SCAN_NUMBER,
    SCAN_TRUE,
    SCAN_FALSE,
    SCAN_NULL,
};

enum scan_step { SCAN_FAILED, SCAN_ITEM, SCAN_CLOSED };

struct json_scan {
    char *at; /* the next byte; after an error the one that caused it */
    char *end;
    /* Where the line begins that is read, and its number, from 1.  Lines are counted while blanks
     * are skipped, because a newline may stand nowhere else.  (The newlines of a string that was
     * unescaped are not those of the text.) */
    const char *line_start;
    size_t line;
    unsigned depth, depth_max; /* how many containers are open, and how many may be */
    const char *error;         /* what is wrong: static, or NULL */
    const char *fault;         /* what was wrong with the first unusable string: static, or NULL */
};

/* A number as it was written. */
struct json_number {
    struct slice text;
    size_t n_digits; /* digits of the integer part */
    bool negative;   /* the text begins with '-', that of -0 too */
    bool integer;    /* the text has neither fraction nor exponent */
};

/* Begin with the @n bytes of @text, which may be NULL if @n is 0.  More than @depth_max containers
 * in each other are an error. */
void json_scan_init(struct json_scan *scan, char *text, size_t n, unsigned depth_max);

/* Skip blanks and tell the kind of value that comes, by its first byte.  Nothing is taken. */
enum scan_kind json_scan_peek(struct json_scan *scan) MUST_CHECK;

/* Take an opening bracket, which json_scan_peek() has seen.  @close is its counterpart. */
enum scan_step json_scan_open(struct json_scan *scan, char close) MUST_CHECK;

/* Behind a value in a container: take the comma (SCAN_ITEM) or @close (SCAN_CLOSED). */
enum scan_step json_scan_next(struct json_scan *scan, char close) MUST_CHECK;

/* Take a member's name and the colon. */
bool json_scan_name(struct json_scan *scan, struct slice *ret) MUST_CHECK;

/* Take a string, or a number, which json_scan_peek() has seen. */
bool json_scan_string(struct json_scan *scan, struct slice *ret) MUST_CHECK;
bool json_scan_number(struct json_scan *scan, struct json_number *ret) MUST_CHECK;

/* Take a value of any kind, and check it like all others. */
bool json_scan_skip(struct json_scan *scan) MUST_CHECK;

/* Skip blanks.  True: nothing is left of the text. */
bool json_scan_at_end(struct json_scan *scan) MUST_CHECK;

/* Skip blanks.  False: something is left of the text, which is an error. */
bool json_scan_finish(struct json_scan *scan) MUST_CHECK;

/* Stop with @error, which is static.  Returns false. */
bool json_scan_fail(struct json_scan *scan, const char *error);

/* Tell where the scan stands.  Lines and columns begin with 1; a column is a byte. */
void json_scan_position(const struct json_scan *scan, size_t *ret_line, size_t *ret_column);

/* The integer part of a number, exactly and without its sign; INT64_MAX if it is 10^17 or more. */
int64_t json_number_cut(const struct json_number *number);

#endif
