/* query_options.h - the command line of `tallyd query`.
 *
 * Layer: service/client, pure except for getenv().
 * TALLYD_URL, TALLYD_TOKEN and TALLYD_SITE stand for options that are not given.  An empty variable
 * counts as not set.
 *
 * Only the server knows which parameters a question takes, and what they may be.  Options are
 * handed on as they are, and the server's answer names a wrong one.
 */
#ifndef SERVICE_CLIENT_QUERY_QUERY_OPTIONS_H
#define SERVICE_CLIENT_QUERY_QUERY_OPTIONS_H

#include <stddef.h>
#include <stdio.h>

#include "storage/base/compiler.h"

enum query_format { QUERY_TABLE, QUERY_JSON, QUERY_CSV };

#define QUERY_PARAMETERS_MAX 2048

/* Texts point into argv, the environment or static storage. */
struct query_options {
    /* "/uv", or with a parameter that the question always has: "/breakdown?by=event" */
    const char *path;
    enum query_format format;
    const char *url;   /* the server's, as given: it may end in '/' */
    const char *token; /* NULL: none */
    struct query_parameter {
        const char *name, *value;
    } parameters[QUERY_PARAMETERS_MAX];
    size_t n_parameters;
};

enum query_options_result {
    QUERY_OPTIONS_RUN,
    QUERY_OPTIONS_HELP, /* --help was given: nothing else was checked */
    QUERY_OPTIONS_WRONG,
    QUERY_OPTIONS_STARVED, /* there was no memory to check the options */
};

/* Parse @argv; argv[0] is the command's name.  QUERY_OPTIONS_WRONG and QUERY_OPTIONS_STARVED:
 * *ret_error, @error_n bytes, says what is wrong. */
enum query_options_result query_options_parse(
    int argc, char **argv, struct query_options *ret, char *ret_error, size_t error_n) MUST_CHECK;

void query_options_print_help(FILE *out);

#endif
