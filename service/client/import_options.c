#include "service/client/import_options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "handlers/text/ascii.h"
#include "handlers/text/check.h"
#include "handlers/text/plain.h"
#include "service/client/server_url.h"
#include "storage/time/units.h"

/* Check @value and store it in an option's field.  NULL, or what the value should have been. */
typedef const char *option_taker(void *field, const char *value);

/* The same for an option that may be repeated. */
typedef const char *option_adder(struct import_filter *filter, struct slice value);

static const char *take_format(void *field, const char *value)
{
    static char expected[256];
    enum log_format *format = field;
    if (log_format_find(value, format)) {
        return NULL;
    }
    size_t n = 0;
    for (enum log_format i = 0; i < LOG_FORMAT_COUNT; i++) {
        const char *before = i == 0 ? "" : i == LOG_FORMAT_COUNT - 1 ? " or " : ", ";
        n += (size_t)snprintf(
            expected + n, sizeof(expected) - n, "%s%s", before, log_format_name(i));
    }
    return expected;
}

static const char *take_nginx_format(void *field, const char *value)
{
    return nginx_template_compile(value, field);
}

/* Take "on", which a flag on the command line means, or "off". */
static const char *take_flag(void *field, const char *value)
{
    bool *flag = field;
    *flag = strcmp(value, "on") == 0;
    return *flag || strcmp(value, "off") == 0 ? NULL : "on or off";
}

/* Keep the text @value.  Returns @expected, unless @is_valid. */
static const char *take_text(void *field, const char *value, bool is_valid, const char *expected)
{
    const char **text = field;
    *text = value;
    return is_valid ? NULL : expected;
}

static const char *take_site(void *field, const char *value)
{
    bool is_valid = event_check_site(slice_of(value)) == NULL;
    return take_text(field, value, is_valid, "a site name: [a-z0-9][a-z0-9._-]{0,63}");
}

/* Where memory is short the URL passes: import_options_parse() checks it again. */
static const char *take_url(void *field, const char *value)
{
    bool is_valid = server_url_judge(value) != SERVER_URL_WRONG;
    return take_text(field, value, is_valid, SERVER_URL_EXPECTED);
}

static const char *take_token(void *field, const char *value)
{
    return take_text(field, value, text_is_graphic(slice_of(value)), TOKEN_EXPECTED);
}

static const char *take_state(void *field, const char *value)
{
    return take_text(field, value, *value != '\0', "the name of a file");
}

static const char *take_keep(void *field, const char *value)
{
    static const struct {
        char unit;
        int64_t seconds;
    } units[] = {{'s', 1}, {'m', MINUTE_S}, {'h', HOUR_S}, {'d', DAY_S}, {'w', 7 * DAY_S}};
    struct import_keep *keep = field;
    *keep = (struct import_keep){IMPORT_KEEP_FOREVER, value};
    if (strcmp(value, "forever") == 0) {
        return NULL;
    }
    const char *p = value;
    int64_t number = 0;
    for (; ascii_is_digit(*p) && number < INT32_MAX; p++) {
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

#define FIELD(name) offsetof(struct import_options, name)

/* A flag has no value_name.  An option that may be repeated has `add` in place of `take`. */
static const struct {
    const char *name, *variable, *value_name;
    option_taker *take;
    option_adder *add;
    size_t field; /* in struct import_options */
    const char *help;
} option_table[] = {
    {"format", "TALLYD_FORMAT", "FORMAT", take_format, NULL, FIELD(format),
        "what FILE holds, see below; auto (default): the format of its first readable line"},
    {"nginx-format", "TALLYD_NGINX_FORMAT", "LOG_FORMAT", take_nginx_format, NULL, FIELD(nginx),
        "what FILE holds, in nginx's words: '$remote_addr [$time_local] \"$request\" $status..'"},
    {"site", "TALLYD_SITE", "SITE", take_site, NULL, FIELD(site),
        "site of the events of an access log, and of NDJSON lines without a site"},
    {"site-from-host", "TALLYD_SITE_FROM_HOST", NULL, take_flag, NULL, FIELD(site_from_host),
        "the site is the host that was asked: lower case, no port; --site where the log has none"},
    {"include", "TALLYD_INCLUDE", "CLASS", NULL, import_filter_include, FIELD(filter),
        "count a class of lines, too (repeat it for several)"},
    {"all", "TALLYD_ALL", NULL, take_flag, NULL, FIELD(filter.all),
        "count GET, HEAD and POST lines whatever their status, robots and files too"},
    {"exclude", "TALLYD_EXCLUDE", "CLASS|/PREFIX", NULL, import_filter_exclude, FIELD(filter),
        "leave out a class whatever else counts, or paths that begin so (repeat it)"},
    {"only", "TALLYD_ONLY", "/PREFIX", NULL, import_filter_only, FIELD(filter),
        "leave out paths that do not begin so (repeat it for several)"},
    {"json", "TALLYD_JSON", NULL, take_flag, NULL, FIELD(json),
        "print the summary as a JSON object"},
    {"url", "TALLYD_URL", "URL", take_url, NULL, FIELD(url),
        "the server (default http://127.0.0.1:8080)"},
    {"token", "TALLYD_TOKEN", "TOKEN", take_token, NULL, FIELD(token),
        "bearer token with scope ingest (other users can see arguments: rather TALLYD_TOKEN)"},
    {"follow", "TALLYD_FOLLOW", NULL, take_flag, NULL, FIELD(follow),
        "go on as FILE grows and rotates, until SIGTERM; see below"},
    {"state", "TALLYD_STATE", "STATE", take_state, NULL, FIELD(state),
        "where --follow remembers how far it has come (default .FILE.tallyd beside FILE)"},
    {"keep-minutes", "TALLYD_KEEP_MINUTES", "DURATION", take_keep, NULL, FIELD(keep[0]),
        "the server's --keep-minutes (default 48h): only decides which lines are named as older"},
    {"keep-hours", "TALLYD_KEEP_HOURS", "DURATION", take_keep, NULL, FIELD(keep[1]),
        "the server's --keep-hours (default 62d), for the same"},
    {"keep-days", "TALLYD_KEEP_DAYS", "DURATION", take_keep, NULL, FIELD(keep[2]),
        "the server's --keep-days (default 1100d), for the same"},
    {"keep-months", "TALLYD_KEEP_MONTHS", "DURATION", take_keep, NULL, FIELD(keep[3]),
        "the server's --keep-months (default forever), for the same"},
};

#define N_OPTIONS (sizeof(option_table) / sizeof(option_table[0]))

static const char help_head[] =
    "usage: tallyd import [OPTION..] FILE|-\n"
    "Send the page views of an access log or of NDJSON events, plain or gzipped, to a running\n"
    "tallyd; - is standard input.\n\n";

static const char help_flags[] =
    "  --help\n        print this\n\n"
    "Each option is also TALLYD_<NAME> in the environment, as in TALLYD_URL; flags are on or "
    "off,\n"
    "values that repeat have commas between.\n\n"
    "FORMAT:";

static const char help_tail[] =
    "\n"
    "  ndjson is one event of POST /events a line, sent as it stands; all others are access "
    "logs.\n"
    "  vhost is combined with the host that was asked in front; nginx's default is combined.\n"
    "  nginx-json has members named as nginx's variables; alb, cloudfront and cloudflare are "
    "the\n"
    "  logs of Amazon's load balancer, of CloudFront, and of Cloudflare's Logpush; iis is "
    "W3C.\n\n"
    "Of an access log page views of people count.  The other lines are left out and counted, "
    "each\n"
    "in the first CLASS that fits: malformed; method (not GET or POST); robot (known agents);\n"
    "error (4xx, 5xx); redirect (3xx but 304); file (.css, .js, .png..); path (--exclude, "
    "--only).\n"
    "The page is the target without its query, the visitor is address and user agent; a host "
    "name\n"
    "in place of the address counts as a user named by a hash of both.\n\n"
    "Run again within a day, after an interruption or when FILE has grown, it counts what is\n"
    "missing: what was counted, each piece for 24 hours, counts nothing again, even if its site\n"
    "was deleted since.  That takes the same lines at the beginning, the same options for site\n"
    "and classes, the same token.\n\n"
    "With --follow FILE is read from its beginning, and what is written later counts within a\n"
    "second of silence.  Started again it goes on from STATE: nothing counts twice within a "
    "day,\n"
    "and files that were rotated meanwhile are finished first, as long as they lie beside "
    "FILE\n"
    "uncompressed.  What is missing is said in bytes.  A server that is away is waited for.\n\n"
    "Exit status: 0; 1 if a line was rejected for another reason than being malformed, or not\n"
    "everything could be sent; 2 for a wrong command line.\n";

void import_options_print_help(FILE *out)
{
    fputs(help_head, out);
    for (size_t i = 0; i < N_OPTIONS; i++) {
        const char *value = option_table[i].value_name;
        fprintf(out, "  --%s%s%s\n        %s\n", option_table[i].name, value != NULL ? " " : "",
            value != NULL ? value : "", option_table[i].help);
    }
    fputs(help_flags, out);
    for (enum log_format format = 0; format < LOG_FORMAT_COUNT; format++) {
        fprintf(out, " %s", log_format_name(format));
    }
    fputs(help_tail, out);
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

static const char *take_value(struct import_options *options, size_t i, const char *value)
{
    return option_table[i].add != NULL
               ? option_table[i].add(&options->filter, slice_of(value))
               : option_table[i].take((char *)options + option_table[i].field, value);
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
        if (value == NULL && option_table[i].value_name == NULL) {
            value = "on";
        } else if (value == NULL && left > 1) {
            value = args[1];
            taken = 2;
        }
        if (value == NULL) {
            (void)snprintf(ret_error, error_n, "--%s needs a value", option_table[i].name);
            return 0;
        }
        const char *expected = take_value(options, i, value);
        if (expected == NULL) {
            return taken;
        }
        (void)snprintf(ret_error, error_n, "--%s must be %s", option_table[i].name, expected);
        return 0;
    }
    (void)snprintf(ret_error, error_n, "unknown option %s (see tallyd import --help)", args[0]);
    return 0;
}

/* Take the value or values that the variable of option @i holds. */
static const char *take_variable(struct import_options *options, size_t i, const char *value)
{
    if (option_table[i].add == NULL) {
        return take_value(options, i, value);
    }
    const char *expected = NULL;
    for (const char *end = value; *end != '\0' && expected == NULL; value = end + 1) {
        end = strchrnul(value, ',');
        struct slice piece = {value, (size_t)(end - value)};
        expected = option_table[i].add(&options->filter, piece);
    }
    return expected;
}

static bool take_environment(struct import_options *options, char *ret_error, size_t error_n)
{
    for (size_t i = 0; i < N_OPTIONS; i++) {
        const char *value = getenv(option_table[i].variable);
        const char *expected =
            value != NULL && *value != '\0' ? take_variable(options, i, value) : NULL;
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
        .keep = {{48 * HOUR_S, "48h"}, {62 * DAY_S, "62d"}, {1100 * DAY_S, "1100d"},
            {IMPORT_KEEP_FOREVER, "forever"}}};
    import_filter_init(&options.filter);
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
    if (options.nginx.n > 0 && options.format != LOG_FORMAT_AUTO) {
        (void)snprintf(ret_error, error_n, "--nginx-format is a format: --format is one too many");
        return IMPORT_OPTIONS_WRONG;
    }
    if (options.path == NULL) {
        (void)snprintf(ret_error, error_n, "FILE is missing (- for standard input)");
        return IMPORT_OPTIONS_WRONG;
    }
    if (options.follow && strcmp(options.path, "-") == 0) {
        (void)snprintf(ret_error, error_n, "--follow needs a file, not standard input");
        return IMPORT_OPTIONS_WRONG;
    }
    if (server_url_judge(options.url) != SERVER_URL_GOOD) {
        (void)snprintf(ret_error, error_n, "out of memory");
        return IMPORT_OPTIONS_STARVED;
    }
    *ret = options;
    return IMPORT_OPTIONS_RUN;
}
