/* import_options.h - the command line of `tallyd import`.
 *
 * Layer: service/client, pure but for getenv().
 * Every option is also TALLYD_<NAME> in the environment.  The command line goes before the
 * environment.  An empty variable counts as not set.
 */
#ifndef SERVICE_CLIENT_IMPORT_OPTIONS_H
#define SERVICE_CLIENT_IMPORT_OPTIONS_H

#include <stdint.h>
#include <stdio.h>

#include "storage/base/compiler.h"

enum import_format {
    IMPORT_FORMAT_AUTO, /* the format of the first line that has one */
    IMPORT_FORMAT_COMBINED,
    IMPORT_FORMAT_COMMON,
    IMPORT_FORMAT_NDJSON,
};

#define IMPORT_KEEP_FOREVER INT64_MAX
#define IMPORT_LEVELS       4

/* Texts point into argv, the environment or static storage. */
struct import_options {
    enum import_format format;
    const char *site;  /* NULL: not given */
    const char *url;   /* of the server, as given: it may end in '/' */
    const char *token; /* NULL: none */
    const char *path;  /* "-": standard input */
    /* How long the server keeps minutes, hours, days and months.  For messages only. */
    struct import_keep {
        int64_t s; /* or IMPORT_KEEP_FOREVER */
        const char *text;
    } keep[IMPORT_LEVELS];
};

enum import_options_result {
    IMPORT_OPTIONS_RUN,
    IMPORT_OPTIONS_HELP, /* --help was given: nothing else was checked */
    IMPORT_OPTIONS_WRONG,
};

/* Parse @argv; argv[0] is the command's name.  IMPORT_OPTIONS_WRONG: *ret_error, @error_n bytes,
 * says what is wrong. */
enum import_options_result import_options_parse(
    int argc, char **argv, struct import_options *ret, char *ret_error, size_t error_n) MUST_CHECK;

void import_options_print_help(FILE *out);

#endif
