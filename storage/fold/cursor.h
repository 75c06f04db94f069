/* cursor.h - how far a log is counted in a partition.
 *
 * Layer: storage, pure.  Thread-safe: no state.
 *
 * Entries of a log are numbered from 1 without a gap, and are counted in that order.  A partition's
 * state keeps one cursor a log, in the field that is named as the log (schema/key.h):
 *
 *     text      what is counted
 *     no field  nothing
 *     "n"       the entries 1 to n
 *     "n:i"     the entries 1 to n - 1, and the first i events of entry n
 */
#ifndef STORAGE_FOLD_CURSOR_H
#define STORAGE_FOLD_CURSOR_H

#include "storage/base/compiler.h"
#include "storage/redis/reply.h"

struct cursor {
    uint64_t whole;  /* the entries 1 to this are counted.. */
    uint32_t events; /* ..and so many events of the next one */
};

/* Read a cursor, or nil.  False, with @ret untouched: the reply is none. */
bool cursor_parse(const struct reply *reply, struct cursor *ret) MUST_CHECK;

#define CURSOR_TEXT 48 /* bytes that hold any cursor */
size_t cursor_print(struct cursor cursor, char text[CURSOR_TEXT]); /* the length; no NUL follows */

/* Is @a behind @b, that is, is less counted? */
static inline bool cursor_is_behind(struct cursor a, struct cursor b)
{
    return a.whole < b.whole || (a.whole == b.whole && a.events < b.events);
}

/* Is event @i (from 0) of entry @n counted? */
static inline bool cursor_has(struct cursor cursor, uint64_t n, uint32_t i)
{
    return n <= cursor.whole || (n == cursor.whole + 1 && i < cursor.events);
}

#endif
