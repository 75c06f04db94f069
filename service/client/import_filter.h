/* import_filter.h - which requests of an access log are page views of people.
 *
 * Layer: service/client, pure.  Thread-safe.
 *
 * A server's log holds far more than what people looked at.  What is left out is sorted into
 * classes, and counted.  A line's class is the first that fits:
 *
 *   malformed  no line of the format
 *   method     not GET or POST
 *   robot      the user agent is a known robot's (robots.h)
 *   error      status 4xx or 5xx
 *   redirect   status 3xx but 304, which is a page that the browser has already
 *   file       the path ends in a suffix of what pages consist of: .css, .png..
 *   path       --exclude has a beginning of the path, or --only has none
 */
#ifndef SERVICE_CLIENT_IMPORT_FILTER_H
#define SERVICE_CLIENT_IMPORT_FILTER_H

#include <stdbool.h>

#include "handlers/text/robots.h"
#include "service/formats/log_line.h"
#include "storage/base/compiler.h"

#define IMPORT_CLASSES(X)                                                                          \
    X(MALFORMED, "malformed")                                                                      \
    X(METHOD, "method")                                                                            \
    X(ROBOT, "robot")                                                                              \
    X(ERROR, "error")                                                                              \
    X(REDIRECT, "redirect")                                                                        \
    X(FILE, "file")                                                                                \
    X(PATH, "path")

#define IMPORT_CLASS_VALUE(name, text) IMPORT_##name,
enum import_class { IMPORT_CLASSES(IMPORT_CLASS_VALUE) IMPORT_CLASS_COUNT };
#undef IMPORT_CLASS_VALUE

/* No class: the line is a page view. */
#define IMPORT_PAGE_VIEW IMPORT_CLASS_COUNT

#define IMPORT_CLASSES_EXPECTED "method, robot, error, redirect or file"
#define IMPORT_PREFIXES_MAX     64

struct import_filter {
    struct robots robots;
    bool all;                    /* GET, HEAD and POST count, whatever else they are */
    unsigned included, excluded; /* classes that --include and --exclude name, as bits */
    size_t n_only, n_exclude;
    struct slice only[IMPORT_PREFIXES_MAX];    /* beginnings of paths; borrowed */
    struct slice exclude[IMPORT_PREFIXES_MAX]; /* the same */
};

/* Make a filter that leaves out what no person looked at. */
void import_filter_init(struct import_filter *filter);

/* The name of a class, a static text.  IMPORT_PAGE_VIEW has none, and must not be given. */
const char *import_class_name(enum import_class class);

/* Take the value of --include, --exclude or --only, which must outlive the filter.  NULL, or what
 * the value should have been (static). */
const char *import_filter_include(struct import_filter *filter, struct slice value) MUST_CHECK;
const char *import_filter_exclude(struct import_filter *filter, struct slice value) MUST_CHECK;
const char *import_filter_only(struct import_filter *filter, struct slice value) MUST_CHECK;

/* The class for which @line is left out, or IMPORT_PAGE_VIEW.
 *
 * A line counts if its class, the first that fits, is to be counted.  But --exclude leaves out
 * every line that its class fits: `--all --exclude robot` counts no robot's HEAD either. */
enum import_class import_filter_class(
    const struct import_filter *filter, const struct log_line *line) MUST_CHECK;

/* Did the user ask for robots (--all, --include robot)? */
bool import_filter_counts_robots(const struct import_filter *filter);

#endif
