/* option_table.h - what an option is, and the list of all options.
 *
 * Layer: service.  Pure; thread-safe.
 */
#ifndef SERVICE_OPTIONS_OPTION_TABLE_H
#define SERVICE_OPTIONS_OPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/slice.h"

/* The type of the field at `offset`, and what its text looks like. */
enum option_type {
    OPTION_STRING,       /* const char *; check() says what is allowed */
    OPTION_PATH,         /* const char *, not empty */
    OPTION_BOOL,         /* bool */
    OPTION_INTEGER,      /* int64_t */
    OPTION_SIZE,         /* int64_t, bytes */
    OPTION_SECONDS,      /* int64_t, a duration of whole seconds */
    OPTION_MILLISECONDS, /* int64_t, a duration */
    OPTION_ENUM,         /* enum of the values 0.., named by words */
};

struct option {
    const char *name; /* without dashes */
    enum option_type type;
    size_t offset;                          /* where struct options has the value */
    const char *fallback;                   /* the default */
    int64_t min, max;                       /* bounds of a number, in the field's unit */
    const char *word;                       /* a word allowed beside the numbers; NULL: none */
    int64_t word_value;                     /* the number that `word` stands for */
    const char *const *words;               /* OPTION_ENUM: the values' names; NULL ends them */
    const char *(*check)(const char *text); /* OPTION_STRING: NULL, or what is allowed */
    bool is_judged;                         /* check() says what is wrong, not what is allowed */
    bool secret;                            /* the value is shown through redis_url_mask() */
    bool not_in_file;
    bool live;        /* SIGHUP can change the value: see live.h */
    const char *unit; /* unit and help are texts for people */
    const char *help;
};

/* A family of options that have a name of the user's in theirs: <before><name><after> = value.
 * They stand in the configuration file only, once for each name. */
struct option_family {
    const char *before, *after; /* static; after may be "" */
    /* Both return NULL, or what is wrong, a static text. */
    const char *(*check_name)(struct slice name);
    const char *(*check)(const char *value);
    const char *unit, *help; /* texts for people */
};

enum {
    OPTION_FAMILY_SITE_TZ,
    OPTION_FAMILY_SITE_ORIGINS,
    OPTION_FAMILY_SITE_DIMENSIONS,
    OPTION_FAMILY_SITE_VISITORS_BY,
    OPTION_FAMILY_SITE_PROPS,
    OPTION_FAMILY_POLICY,
    OPTION_FAMILY_PAGE,
    OPTION_FAMILY_SECTION
}; /* positions in option_families */

#define OPTION_SITE "site." /* the families that begin so are about a site */

extern const struct option_family option_families[];
extern const size_t option_families_n;

#define OPTION_AS_LIMIT (-1) /* ingest-burst: one less than ingest-limit counts */
#define OPTION_HALF     0    /* redis-memory: half of the machine's */
#define OPTION_AUTO     0    /* partitions: what is good for the Redis */
#define OPTION_BY_KIND  (-2) /* ack-replicas: by what kind of Redis it is */

extern const struct option option_table[];
extern const size_t option_table_n;

#endif
