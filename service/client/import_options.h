/* import_options.h - the command line of `tallyd import`.
 *
 * Layer: service/client, pure except for getenv().
 * Every option is also TALLYD_<NAME> in the environment.  The command line goes before the
 * environment.  An empty variable counts as not set.  The variable of an option that may be
 * repeated holds its values with commas between, and that of a flag is on or off.
 */
#ifndef SERVICE_CLIENT_IMPORT_OPTIONS_H
#define SERVICE_CLIENT_IMPORT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "service/client/import_filter.h"
#include "service/formats/log_format.h"
#include "storage/base/compiler.h"
#include "storage/job/event.h"

#define IMPORT_KEEP_FOREVER INT64_MAX
#define IMPORT_LEVELS       4

/* Texts point into argv, the environment or static storage. */
struct import_options {
    enum log_format format;
    struct nginx_template nginx; /* the format, if nginx.n is not 0 */
    struct import_filter filter; /* says which lines count */
    bool site_from_host;         /* the site is the host that was asked; `site` if there is none */
    bool json;                   /* the summary is one JSON object */
    const char *site;            /* NULL: not given */
    const char *url;             /* the server's, as given: it may end in '/' */
    const char *token;           /* NULL: none */
    const char *path;            /* "-": standard input */
    bool follow;                 /* go on as the file grows and rotates */
    const char *state;           /* the state file of `follow`; NULL: beside path */
    /* How long the server keeps minutes, hours, days and months.  For messages only. */
    struct import_keep {
        int64_t s; /* seconds, or IMPORT_KEEP_FOREVER */
        const char *text;
    } keep[IMPORT_LEVELS];
};

/* The site of events that name none. */
static inline const char *import_options_site(const struct import_options *options)
{
    return options->site != NULL ? options->site : EVENT_SITE_DEFAULT.p;
}

enum import_options_result {
    IMPORT_OPTIONS_RUN,
    IMPORT_OPTIONS_HELP, /* --help was given: nothing else was checked */
    IMPORT_OPTIONS_WRONG,
    IMPORT_OPTIONS_STARVED, /* there was no memory to check the options */
};

/* Parse @argv; argv[0] is the command's name.  IMPORT_OPTIONS_WRONG and IMPORT_OPTIONS_STARVED:
 * *ret_error, @error_n bytes, says what is wrong. */
enum import_options_result import_options_parse(
    int argc, char **argv, struct import_options *ret, char *ret_error, size_t error_n) MUST_CHECK;

void import_options_print_help(FILE *out);

#endif
