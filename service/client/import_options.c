#include "service/client/import_options.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "service/client/server_url.h"

#define SITE_MAX 64

/* Check @value and store it.  NULL, or what the value should have been. */
typedef const char *option_taker(struct import_options *options, const char *value);

static const char *take_format(struct import_options *options, const char *value)
{
    static const char *const names[] = {
        [IMPORT_FORMAT_AUTO] = "auto",
        [IMPORT_FORMAT_COMBINED] = "combined",
        [IMPORT_FORMAT_COMMON] = "common",
        [IMPORT_FORMAT_NDJSON] = "ndjson",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(value, names[i]) == 0) {
            options->format = (enum import_format)i;
            return NULL;
        }
    }
    return "combined, common, ndjson or auto";
}

static const char *take_site(struct import_options *options, const char *value)
{
    static const char first[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    static const char rest[] = "abcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t n = strlen(value);
    if (n == 0 || n > SITE_MAX || strchr(first, value[0]) == NULL || strspn(value, rest) != n) {
        return "a site name: [a-z0-9][a-z0-9._-]{0,63}";
    }
    options->site = value;
    return NULL;
}

static const char *take_url(struct import_options *options, const char *value)
{
    options->url = value;
    return server_url_valid(value) ? NULL : SERVER_URL_EXPECTED;
}

static const char *take_token(struct import_options *options, const char *value)
{
    options->token = value;
    return bearer_token_valid(value) ? NULL : TOKEN_EXPECTED;
}

static const char *take_keep(struct import_keep *keep, const char *value)
{
    static const struct {
        char unit;
        int64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 7 * 86400}};
    *keep = (struct import_keep){IMPORT_KEEP_FOREVER, value};
    if (strcmp(value, "forever") == 0) {
        return NULL;
    }
    const char *p = value;
    int64_t number = 0;
    for (; *p >= '0' && *p <= '9' && number < INT32_MAX; p++) {
        number = number * 10 + (*p - '0');
    }
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (number > 0 && p[0] == units[i].unit && p[1] == '\0') {
            keep->s = number * units[i].seconds;
            return NULL;
        }
    }
    return "a duration like 48h or 7d, or forever";
}

static const char *take_keep_minutes(struct import_options *options, const char *value)
{
    return take_keep(&options->keep[0], value);
}

static const char *take_keep_hours(struct import_options *options, const char *value)
{
    return take_keep(&options->keep[1], value);
}

static const char *take_keep_days(struct import_options *options, const char *value)
{
    return take_keep(&options->keep[2], value);
}

static const char *take_keep_months(struct import_options *options, const char *value)
{
    return take_keep(&options->keep[3], value);
}

static const struct {
    const char *name, *variable, *value_name;
    option_taker *take;
    const char *help;
} option_table[] = {
    {"format", "TALLYD_FORMAT", "combined|common|ndjson|auto", take_format,
        "what FILE holds; auto (default): the format of its first readable line"},
    {"site", "TALLYD_SITE", "SITE", take_site,
        "site of the events of an access log, and of NDJSON lines without a site"},
    {"url", "TALLYD_URL", "URL", take_url, "the server (default http://127.0.0.1:8080)"},
    {"token", "TALLYD_TOKEN", "TOKEN", take_token,
        "bearer token with scope ingest (other users can see arguments: rather TALLYD_TOKEN)"},
    {"keep-minutes", "TALLYD_KEEP_MINUTES", "DURATION", take_keep_minutes,
        "the server's --keep-minutes (default 48h): only decides which lines are named as older"},
    {"keep-hours", "TALLYD_KEEP_HOURS", "DURATION", take_keep_hours,
        "the server's --keep-hours (default 62d), for the same"},
    {"keep-days", "TALLYD_KEEP_DAYS", "DURATION", take_keep_days,
        "the server's --keep-days (default 1100d), for the same"},
    {"keep-months", "TALLYD_KEEP_MONTHS", "DURATION", take_keep_months,
        "the server's --keep-months (default forever), for the same"},
};

#define N_OPTIONS (sizeof(option_table) / sizeof(option_table[0]))

void import_options_print_help(FILE *out)
{
    fputs(
        "usage: tallyd import [OPTION..] FILE|-\n"
        "Send the page views of an access log or of NDJSON events, plain or gzipped, to a running\n"
        "tallyd; - is standard input.\n\n",
        out);
    for (size_t i = 0; i < N_OPTIONS; i++) {
        fprintf(out, "  --%s %s\n        %s\n", option_table[i].name, option_table[i].value_name,
            option_table[i].help);
    }
    fputs(
        "  --help\n        print this\n\n"
        "Each option is also TALLYD_<NAME> in the environment, as in TALLYD_URL.\n\n"
        "Access logs: GET, HEAD and POST lines count whatever their status; other methods are\n"
        "skipped. The page is the target without its query, the visitor is address and user "
        "agent;\n"
        "a host name in place of the address counts as a user named by a hash of both.\n"
        "NDJSON: one event of POST /events a line, sent as it stands.\n\n"
        "Run again within a day, after an interruption or when FILE has grown, it counts what is\n"
        "missing: what was counted, each piece for 24 hours, counts nothing again.  That takes "
        "the\n"
        "same lines at the beginning, the same --site and the same token.\n\n"
        "Exit status: 0; 1 if a line was rejected for another reason than being malformed, or not\n"
        "everything could be sent; 2 for a wrong command line.\n",
        out);
}

/* Does @arg name option @i?  *ret_value is what stands behind the '=', NULL without one. */
static bool names_option(const char *arg, size_t i, const char **ret_value)
{
    size_t n = strlen(option_table[i].name);
    if (strncmp(arg, "--", 2) != 0 || strncmp(arg + 2, option_table[i].name, n) != 0) {
        return false;
    }
    if (arg[2 + n] != '\0' && arg[2 + n] != '=') {
        return false;
    }
    *ret_value = arg[2 + n] == '=' ? arg + 3 + n : NULL;
    return true;
}

/* Take an option, and perhaps the argument behind it.  Returns how many arguments were taken, 0 if
 * one is wrong. */
static int take_option(
    int left, char **args, struct import_options *options, char *ret_error, size_t error_n)
{
    for (size_t i = 0; i < N_OPTIONS; i++) {
        const char *value;
        if (!names_option(args[0], i, &value)) {
            continue;
        }
        int taken = 1;
        if (value == NULL && left > 1) {
            value = args[1];
            taken = 2;
        }
        if (value == NULL) {
            (void)snprintf(ret_error, error_n, "--%s needs a value", option_table[i].name);
            return 0;
        }
        const char *expected = option_table[i].take(options, value);
        if (expected == NULL) {
            return taken;
        }
        (void)snprintf(ret_error, error_n, "--%s must be %s", option_table[i].name, expected);
        return 0;
    }
    (void)snprintf(ret_error, error_n, "unknown option %s (see tallyd import --help)", args[0]);
    return 0;
}

static bool take_environment(struct import_options *options, char *ret_error, size_t error_n)
{
    for (size_t i = 0; i < N_OPTIONS; i++) {
        const char *value = getenv(option_table[i].variable);
        const char *expected =
            value != NULL && *value != '\0' ? option_table[i].take(options, value) : NULL;
        if (expected != NULL) {
            (void)snprintf(ret_error, error_n, "%s must be %s", option_table[i].variable, expected);
            return false;
        }
    }
    return true;
}

static bool asks_for_help(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            return true;
        }
    }
    return false;
}

enum import_options_result import_options_parse(
    int argc, char **argv, struct import_options *ret, char *ret_error, size_t error_n)
{
    if (asks_for_help(argc, argv)) {
        return IMPORT_OPTIONS_HELP;
    }
    struct import_options options = {.url = SERVER_URL_DEFAULT,
        .keep = {{(int64_t)48 * 3600, "48h"}, {(int64_t)62 * 86400, "62d"},
            {(int64_t)1100 * 86400, "1100d"}, {IMPORT_KEEP_FOREVER, "forever"}}};
    if (!take_environment(&options, ret_error, error_n)) {
        return IMPORT_OPTIONS_WRONG;
    }
    bool only_files = false;
    for (int i = 1, taken; i < argc; i += taken) {
        taken = 1;
        if (!only_files && strcmp(argv[i], "--") == 0) {
            only_files = true;
        } else if (!only_files && argv[i][0] == '-' && argv[i][1] != '\0') {
            taken = take_option(argc - i, argv + i, &options, ret_error, error_n);
            if (taken == 0) {
                return IMPORT_OPTIONS_WRONG;
            }
        } else if (options.path != NULL) {
            (void)snprintf(ret_error, error_n, "one FILE at a time, and there is also %s", argv[i]);
            return IMPORT_OPTIONS_WRONG;
        } else {
            options.path = argv[i];
        }
    }
    if (options.path == NULL) {
        (void)snprintf(ret_error, error_n, "FILE is missing (- for standard input)");
        return IMPORT_OPTIONS_WRONG;
    }
    *ret = options;
    return IMPORT_OPTIONS_RUN;
}
