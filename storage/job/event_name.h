/* event_name.h - names of named events: names that no page can have.
 *
 * Layer: storage, public: plain values.  Thread-safe: no state.
 *
 * A named event ("signup") is counted in the tables that pages have, under its name behind a mark.
 * The mark is a control character, and no page has one.  So the two cannot be taken for each other:
 * whatever lists names tells them apart by the first byte.  In Redis the mark stands in the keys
 * and fields where a page would stand (schema/key.h).
 */
#ifndef STORAGE_JOB_EVENT_NAME_H
#define STORAGE_JOB_EVENT_NAME_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "storage/base/slice.h"

#define EVENT_NAME_MARK '\x01'
#define EVENT_NAME_MAX  128 /* bytes, without the mark: part of the API */

/* Is @name, of a page or of a named event, that of a named event? */
static inline bool event_name_is(struct slice name)
{
    return name.n > 0 && name.p[0] == EVENT_NAME_MARK;
}

/* The name as users know it, without the mark.  @name is that of a named event. */
static inline struct slice event_name_bare(struct slice name)
{
    return (struct slice){name.p + 1, name.n - 1};
}

/* The same name behind a mark.  The mark overwrites the byte before @name, which nobody needs then:
 * in a JSON text that is read in place it is a quotation mark that was read. */
static inline struct slice event_name_mark_before(struct slice name)
{
    char *mark = (char *)(uintptr_t)name.p - 1;
    *mark = EVENT_NAME_MARK;
    return (struct slice){mark, name.n + 1};
}

/* Write @name behind a mark to @to, which holds name.n + 1 bytes; the result is there. */
static inline struct slice event_name_mark(struct slice name, char *to)
{
    *to = EVENT_NAME_MARK;
    memcpy(to + 1, name.p, name.n);
    return (struct slice){to, name.n + 1};
}

#endif
