/* reply.h - what Redis answered to one command.
 *
 * Layer: storage, pure.  Thread-safe: no state.
 */
#ifndef STORAGE_REDIS_REPLY_H
#define STORAGE_REDIS_REPLY_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/slice.h"

enum reply_type { REPLY_NIL, REPLY_INTEGER, REPLY_TEXT, REPLY_STATUS, REPLY_ERROR, REPLY_ARRAY };

/* A reply and all that it points to live in the connection's arena (redis.h). */
struct reply {
    enum reply_type type;
    int64_t integer;     /* REPLY_INTEGER */
    struct slice text;   /* REPLY_TEXT, REPLY_STATUS, REPLY_ERROR; a NUL follows the bytes */
    struct reply *items; /* REPLY_ARRAY: its `n` elements */
    size_t n;
};

/* Is @reply an error that begins with @code, as "OOM" or "NOSCRIPT"? */
bool reply_is_error(const struct reply *reply, const char *code);

/* The text that an error message has of a reply of an unexpected type: Redis's own sentence if
 * @reply is an error, else a static text. */
const char *reply_complaint(const struct reply *reply);

/* The value of an integer reply, or of a text of 1 to 18 decimal digits.  Of any other reply it is
 * @fallback. */
int64_t reply_integer(const struct reply *reply, int64_t fallback);

/* The value of a reply to TIME: microseconds since 1970, UTC.  0: the reply is not one to TIME. */
int64_t reply_time_us(const struct reply *reply);

/* How many bytes a cursor of SCAN and a NUL have at most. */
#define REPLY_CURSOR 24

/* The list of a reply to SCAN, SSCAN, HSCAN or ZSCAN.  The reply's cursor is copied to @cursor; "0"
 * says that nothing is left to be scanned.  NULL: the reply is of another form, and @cursor is
 * untouched. */
const struct reply *reply_scan(const struct reply *reply, char cursor[static REPLY_CURSOR]);

/* The value of a field in a reply to INFO or CLUSTER INFO: the rest of the line that begins with
 * @name.  @name includes the colon.  p is NULL: there is no such line. */
struct slice reply_field(const struct reply *reply, const char *name);

#endif
