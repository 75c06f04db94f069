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
    struct reply *items; /* REPLY_ARRAY: n of them */
    size_t n;
};

/* Is it an error reply that begins with this code ("OOM", "NOSCRIPT", ...)? */
bool reply_is_error(const struct reply *reply, const char *code);

/* What is said of a reply that is not of the kind that was asked for: Redis's own sentence, if it
 * is an error. */
const char *reply_complaint(const struct reply *reply);

/* The value of an integer reply, or of a text of 1 to 18 decimal digits; @fallback for anything
 * else. */
int64_t reply_integer(const struct reply *reply, int64_t fallback);

/* The value of a reply to TIME: microseconds since 1970, UTC.  0: the reply is not one to TIME. */
int64_t reply_time_us(const struct reply *reply);

/* Bytes that hold a cursor of SCAN and a NUL. */
#define REPLY_CURSOR 24

/* The list of a reply to SCAN or the like.  Its cursor goes to @cursor: "0" where nothing is left
 * to be scanned.  NULL: the reply is not one to SCAN, and the cursor stays. */
const struct reply *reply_scan(const struct reply *reply, char cursor[static REPLY_CURSOR]);

/* What stands behind @name, "name:", on a line of its own of a reply to INFO or CLUSTER INFO.  p is
 * NULL: there is no such line. */
struct slice reply_field(const struct reply *reply, const char *name);

#endif
