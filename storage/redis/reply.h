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

struct reply {
    enum reply_type type;
    int64_t integer;
    struct slice text; /* REPLY_TEXT, REPLY_STATUS, REPLY_ERROR; NUL-terminated besides */
    struct reply *items;
    size_t n;
};

/* Does an error reply begin with this code ("OOM", "NOSCRIPT", ...)? */
bool reply_is_error(const struct reply *reply, const char *code);

/* An integer reply, or a text of decimal digits; @fallback for anything else. */
int64_t reply_integer(const struct reply *reply, int64_t fallback);
/* A TIME reply in microseconds; 0 if it is none. */
int64_t reply_time_us(const struct reply *reply);

#endif
