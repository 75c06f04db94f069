/* dimension.h - dimensions: where the visitor of a page view came from, with what, and what else a
 * site wants to tell apart.
 *
 * Layer: storage, public: plain values.  Thread-safe: no state.
 *
 * A page view has one value of each dimension that its site counts.  "(none)" is a value, so the
 * values of a dimension add up to the site's page views.  A value stands under a name that no page
 * has (job/counted_name.h).
 */
#ifndef STORAGE_JOB_DIMENSION_H
#define STORAGE_JOB_DIMENSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/slice.h"

/* The letters stand in Redis's keys: part of the data's layout.
 *    value                    letter  name, part of the API */
#define DIMENSIONS(X)                                                                              \
    X(DIMENSION_SOURCE, 's', "source")                                                             \
    X(DIMENSION_UTM_SOURCE, 'S', "utm_source")                                                     \
    X(DIMENSION_UTM_MEDIUM, 'M', "utm_medium")                                                     \
    X(DIMENSION_UTM_CAMPAIGN, 'C', "utm_campaign")                                                 \
    X(DIMENSION_UTM_TERM, 'T', "utm_term")                                                         \
    X(DIMENSION_UTM_CONTENT, 'N', "utm_content")                                                   \
    X(DIMENSION_BROWSER, 'b', "browser")                                                           \
    X(DIMENSION_OS, 'o', "os")                                                                     \
    X(DIMENSION_DEVICE, 'd', "device")                                                             \
    X(DIMENSION_COUNTRY, 'c', "country")                                                           \
    X(DIMENSION_LANGUAGE, 'l', "language")                                                         \
    X(DIMENSION_PROP, 'p', "prop")

enum dimension {
#define X(value, letter, name) value,
    DIMENSIONS(X)
#undef X
        DIMENSION_N
};

#define DIMENSION_NONE      SLICE("(none)") /* the value of a page view that has no other */
#define DIMENSION_VALUE_MAX 256             /* bytes of a value: part of the API */
#define DIMENSION_PROPS_MAX 2               /* properties that a site counts */
#define DIMENSION_PROP_MAX  64              /* bytes of a property's name, [A-Za-z0-9._-] */

/* Sections of one page view; the options see to it that no page is in more. */
#define DIMENSION_SECTIONS_MAX 8

/* What one page view may be counted for beside its page and its site. */
#define EVENT_VALUES_MAX ((unsigned)DIMENSION_PROP + DIMENSION_PROPS_MAX + DIMENSION_SECTIONS_MAX)

/* A value or a section that a page view is counted for, beside its page and its site. */
struct event_value {
    struct slice text;  /* 1..DIMENSION_VALUE_MAX bytes of UTF-8 without C0 controls and DEL; with
                           DIMENSION_PROP the property's name and '=' in front; of a section its
                           name */
    uint8_t dimension;  /* enum dimension; DIMENSION_N: a section */
    bool with_visitors; /* its visitors are counted, too */
};

/* The letter of a dimension. */
char dimension_letter(enum dimension dimension);

/* The dimension of a letter.  DIMENSION_N: there is none. */
enum dimension dimension_of_letter(char letter);

/* The name of a dimension, a static text. */
const char *dimension_name(enum dimension dimension);

/* The dimension of @name; "prop" is not such a name.  DIMENSION_N: there is none. */
enum dimension dimension_find(struct slice name);

#endif
