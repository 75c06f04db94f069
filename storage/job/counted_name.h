/* counted_name.h - the names that the tables of pages hold: pages, and what no page can be.
 *
 * Layer: storage, public: plain values.  Thread-safe: no state.
 *
 * Named events, values of dimensions and sections are counted in the tables that pages have.  Each
 * stands there behind a mark, a control character.  No page has one, so the first byte tells what a
 * name is.  In Redis the mark stands in the keys and fields where a page would stand
 * (schema/key.h).
 *
 *     the name                          is that of
 *     a page                            a page
 *     \x01 name                         a named event
 *     \x02 letter value                 a value of a dimension (job/dimension.h)
 *     \x02 p property = value           a value of a property
 *     \x03 name                         a section: the pages that begin with a text
 *     \x04 class                        what a cap put together of a class
 *     \x05 letter                       a sum over visits of the whole site (NAME_VISITS_..)
 *
 * The class of a name is what all names of its kind begin with: nothing for pages, "\x01" for named
 * events, "\x02s" for sources, "\x02pplan=" for values of the property `plan`.  A cap holds for a
 * class.  Sections have none, because the configuration names them.
 */
#ifndef STORAGE_JOB_COUNTED_NAME_H
#define STORAGE_JOB_COUNTED_NAME_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "storage/base/slice.h"
#include "storage/job/dimension.h"

#define NAME_MARK_EVENT   '\x01'
#define NAME_MARK_VALUE   '\x02'
#define NAME_MARK_SECTION '\x03'
#define NAME_MARK_OTHER   '\x04'
#define NAME_MARK_VISITS  '\x05'

/* Sums over the visits of a site, in the tables of visits (merge/merge_visits.h): visits that came
 * to a second event, and the seconds that visits grew by. */
#define NAME_VISITS_ENGAGED                                                                        \
    SLICE("\x05"                                                                                   \
          "e")
#define NAME_VISITS_SECONDS                                                                        \
    SLICE("\x05"                                                                                   \
          "s")

#define EVENT_NAME_MAX 128 /* bytes of a named event, without the mark: part of the API */

/* Bytes that the class of any name has at most. */
#define NAME_CLASS_MAX (2 + DIMENSION_PROP_MAX + 1)

/* Bytes that the name of any value has at most. */
#define VALUE_NAME_MAX (NAME_CLASS_MAX + DIMENSION_VALUE_MAX)

/* The mark of a name; '\0': it is a page's, or empty, the whole site's. */
static inline char counted_name_mark(struct slice name)
{
    return name.n > 0 && name.p[0] <= NAME_MARK_VISITS && name.p[0] > 0 ? name.p[0] : '\0';
}

/* The class of @name: a part of it.  Sections, and what a cap put together, have no class. */
static inline struct slice counted_name_class(struct slice name)
{
    char mark = counted_name_mark(name);
    if (mark != NAME_MARK_VALUE || name.n < 2) {
        return (struct slice){name.p, mark == NAME_MARK_EVENT ? 1 : 0};
    }
    const char *equals = name.p[1] == 'p' ? memchr(name.p, '=', name.n) : NULL;
    return (struct slice){name.p, equals == NULL ? 2 : (size_t)(equals - name.p) + 1};
}

/* Is @name that of what a cap put together of @class? */
static inline bool counted_name_is_other(struct slice name, struct slice class)
{
    return name.n == class.n + 1 && name.p[0] == NAME_MARK_OTHER &&
           (class.n == 0 || memcmp(name.p + 1, class.p, class.n) == 0);
}

/* Write the name of what is put together of @class to @to, which holds 1 + class.n bytes; the
 * result is there. */
static inline struct slice counted_name_of_others(struct slice class, char *to)
{
    to[0] = NAME_MARK_OTHER;
    if (class.n > 0) {
        memcpy(to + 1, class.p, class.n);
    }
    return (struct slice){to, class.n + 1};
}

/* Does @name lie in the partition of its site, and not in one that its own hash chooses? */
static inline bool counted_name_at_site(struct slice name)
{
    char mark = counted_name_mark(name);
    if (mark == NAME_MARK_OTHER && name.n > 1) {
        mark = name.p[1];
    }
    return mark == NAME_MARK_VALUE || mark == NAME_MARK_SECTION;
}

/* ---- named events ---- */

/* Is @name, of a page or of a named event, that of a named event? */
static inline bool event_name_is(struct slice name)
{
    return counted_name_mark(name) == NAME_MARK_EVENT;
}

/* The name of what a cap put together of the class of @name, which is that of a page or of a named
 * event.  The text is static. */
static inline struct slice counted_name_others(struct slice name)
{
    return event_name_is(name) ? SLICE("\x04\x01") : SLICE("\x04");
}

/* The name as users know it, without the mark.  @name is that of a named event, or of a section. */
static inline struct slice event_name_bare(struct slice name)
{
    return (struct slice){name.p + 1, name.n - 1};
}

/* The same name behind a mark.  The mark overwrites the byte before @name, which must not be needed
 * any more: in a JSON text that is read in place that byte is the opening quotation mark. */
static inline struct slice event_name_mark_before(struct slice name)
{
    char *mark = (char *)(uintptr_t)name.p - 1;
    *mark = NAME_MARK_EVENT;
    return (struct slice){mark, name.n + 1};
}

/* Write @name behind a mark to @to, which holds name.n + 1 bytes; the result is there. */
static inline struct slice event_name_mark(struct slice name, char *to)
{
    *to = NAME_MARK_EVENT;
    memcpy(to + 1, name.p, name.n);
    return (struct slice){to, name.n + 1};
}

/* ---- values and sections ---- */

/* Write the class of a dimension, of @prop with DIMENSION_PROP, to @to, which holds NAME_CLASS_MAX
 * bytes; the result is there. */
static inline struct slice value_class(enum dimension dimension, struct slice prop, char *to)
{
    size_t n = 2;
    to[0] = NAME_MARK_VALUE;
    to[1] = dimension_letter(dimension);
    if (dimension == DIMENSION_PROP) {
        memcpy(to + n, prop.p, prop.n);
        n += prop.n;
        to[n++] = '=';
    }
    return (struct slice){to, n};
}

/* Write the name of a value, or of a section, to @to, which holds VALUE_NAME_MAX bytes; the result
 * is there. */
static inline struct slice value_name(const struct event_value *value, char *to)
{
    size_t n = 0;
    to[n++] = value->dimension == DIMENSION_N ? NAME_MARK_SECTION : NAME_MARK_VALUE;
    if (value->dimension != DIMENSION_N) {
        to[n++] = dimension_letter((enum dimension)value->dimension);
    }
    memcpy(to + n, value->text.p, value->text.n);
    return (struct slice){to, n + value->text.n};
}

#endif
