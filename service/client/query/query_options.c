#include "service/client/query/query_options.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "handlers/text/plain.h"
#include "service/client/server_url.h"

static const struct {
    const char *name, *path, *help;
} questions[] = {
    {"uv", "/uv", "distinct visitors"},
    {"pv", "/pv", "page views"},
    {"ips", "/ips", "distinct addresses"},
    {"visits", "/visits", "visits"},
    {"stats", "/stats", "all four; of a site with bounce rate and duration"},
    {"pages", "/pages", "the top pages; --by uv: by visitors; --by visits: entry pages"},
    {"breakdown", "/breakdown", "page views by source, browser, country..: --by source"},
    {"events", "/breakdown?by=event", "the top named events; --metric uv: by visitors"},
    {"overlap", "/overlap", "visitors that two pages, or events, have in common"},
    {"dau", "/dau", "users active on a day (--date), or on each day"},
    {"active", "/active", "users active on any day, or on all (--match all)"},
    {"retention", "/retention", "of the users of a day (--cohort), how many came back"},
    {"funnel", "/funnel", "users who did one action (--step), a second one, and so on"},
    {"frequency", "/frequency", "users active on one day, on two, and so on"},
    {"sites", "/sites", "sites that have had events; with --from, their figures"},
    {"hotkeys", "/hotkeys", "pages that are hot right now"},
};

#define N_QUESTIONS (sizeof(questions) / sizeof(questions[0]))

/* An option without a value_name is a flag.  Each option that follows `help` here is a parameter of
 * the question, with '_' for '-' in its name. */
static const struct option {
    const char *name, *value_name, *help;
} option_table[] = {
    {"json", NULL, "the server's answer as it is"},
    {"csv", NULL, "comma-separated values, the first line names them"},
    {"url", "URL", "the server (default " SERVER_URL_DEFAULT ")"},
    {"token", "TOKEN",
        "bearer token with scope read (other users can see arguments: rather TALLYD_TOKEN)"},
    {"help", NULL, "print this"},
    {"site", "SITE", "the site that is asked for"},
    {"page", "PAGE", "a page; repeat it for the union of several (none: the whole site)"},
    {"pageset", "NAME", "the pages of a set"},
    {"event", "NAME", "a named event in place of a page; repeat it for the union of several"},
    {"from", "TIME", "the window's beginning: 2026-11-20, now-7d, now/d.. (default: 24 hours)"},
    {"to", "TIME", "its end (default: now)"},
    {"from2", "TIME", "of overlap: the beginning of a second window, for the second page"},
    {"to2", "TIME", "its end"},
    {"tz", "ZONE", "where days begin: Europe/Berlin"},
    {"step", "STEP", "a series: 1m 5m 15m 1h 1d 1w 1M or auto; of funnel: an action, 2 to 8 times"},
    {"round", "outer", "take the nearest window that can be answered"},
    {"explain", NULL, "list the keys that were read"},
    {"by", "WORD", "order of pages: pv, uv or visits; of breakdown what by, as source"},
    {"metric", "pv|uv", "of events and breakdown: the order, and what a series has"},
    {"limit", "N", "how many rows"},
    {"prefix", "TEXT", "pages that begin so"},
    {"date", "DATE", "of dau"},
    {"action", "ACTION", "of dau, active, retention and frequency"},
    {"match", "any|all", "of active"},
    {"new-within", "90d", "of dau and retention: new users were not there so many days before"},
    {"cohort", "DATE", "of retention: a day of the cohort's period"},
    {"days", "N", "of retention: how many periods"},
    {"period", "PERIOD", "of retention: day, week or month"},
    {"cohorts", "N", "of retention: how many cohorts, one after the other"},
    {"return", "ACTION", "of retention: the action by which users come back"},
};

#define N_OPTIONS (sizeof(option_table) / sizeof(option_table[0]))

void query_options_print_help(FILE *out)
{
    fputs("usage: tallyd query QUESTION [OPTION..]\n"
          "Ask a running tallyd, and print the answer as a table.\n\n",
        out);
    for (size_t i = 0; i < N_QUESTIONS; i++) {
        fprintf(out, "  %-9s %s\n", questions[i].name, questions[i].help);
    }
    fputc('\n', out);
    for (size_t i = 0; i < N_OPTIONS; i++) {
        const char *value = option_table[i].value_name;
        fprintf(out, "  --%s%s%s\n        %s\n", option_table[i].name, value != NULL ? " " : "",
            value != NULL ? value : "", option_table[i].help);
    }
    fputs("\n--url, --token and --site are also TALLYD_URL, TALLYD_TOKEN and TALLYD_SITE in the\n"
          "environment.\n\n"
          "Exit status: 0; 1 if the server does not answer, or refuses; 2 for a wrong command "
          "line.\n",
        out);
}

static bool add_parameter(struct query_options *options, const char *name, const char *value)
{
    if (options->n_parameters == QUERY_PARAMETERS_MAX) {
        return false;
    }
    options->parameters[options->n_parameters++] = (struct query_parameter){name, value};
    return true;
}

/* Take option @i; the value of a flag is "1".  NULL, or what the value should have been. */
static const char *take(struct query_options *options, size_t i, const char *value)
{
    const char *name = option_table[i].name;
    if (strcmp(name, "json") == 0 || strcmp(name, "csv") == 0) {
        enum query_format format = name[0] == 'j' ? QUERY_JSON : QUERY_CSV;
        bool other = options->format != QUERY_TABLE && options->format != format;
        options->format = format;
        return other ? "alone: --json and --csv exclude each other" : NULL;
    }
    if (strcmp(name, "url") == 0) {
        options->url = value; /* if memory is short: query_options_parse() checks it again */
        return server_url_judge(value) != SERVER_URL_WRONG ? NULL : SERVER_URL_EXPECTED;
    }
    if (strcmp(name, "token") == 0) {
        options->token = value;
        return text_is_graphic(slice_of(value)) ? NULL : TOKEN_EXPECTED;
    }
    return add_parameter(options, name, value) ? NULL : "given less often";
}

/* Does @arg name option @i?  *ret_value is what stands behind the '=', NULL without one. */
static bool names_option(const char *arg, size_t i, const char **ret_value)
{
    size_t n = strlen(option_table[i].name);
    if (strncmp(arg, "--", 2) != 0 || strncmp(arg + 2, option_table[i].name, n) != 0 ||
        (arg[2 + n] != '\0' && arg[2 + n] != '=')) {
        return false;
    }
    *ret_value = arg[2 + n] == '=' ? arg + 3 + n : NULL;
    return true;
}

/* Take an option, and perhaps the argument behind it.  Returns how many arguments were taken, 0 if
 * one is wrong. */
static int take_option(
    int left, char **args, struct query_options *options, char *ret_error, size_t error_n)
{
    for (size_t i = 0; i < N_OPTIONS; i++) {
        const char *value;
        if (!names_option(args[0], i, &value)) {
            continue;
        }
        int taken = 1;
        if (option_table[i].value_name == NULL && value != NULL) {
            (void)snprintf(ret_error, error_n, "--%s takes no value", option_table[i].name);
            return 0;
        }
        if (option_table[i].value_name == NULL) {
            value = "1";
        } else if (value == NULL && left > 1) {
            value = args[1];
            taken = 2;
        }
        if (value == NULL) {
            (void)snprintf(ret_error, error_n, "--%s needs a value", option_table[i].name);
            return 0;
        }
        const char *expected = take(options, i, value);
        if (expected == NULL) {
            return taken;
        }
        (void)snprintf(ret_error, error_n, "--%s must be %s", option_table[i].name, expected);
        return 0;
    }
    (void)snprintf(ret_error, error_n, "unknown option %s (see tallyd query --help)", args[0]);
    return 0;
}

static bool take_question(
    struct query_options *options, const char *name, char *ret_error, size_t error_n)
{
    if (options->path != NULL) {
        (void)snprintf(ret_error, error_n, "one question at a time, and there is also %s", name);
        return false;
    }
    for (size_t i = 0; i < N_QUESTIONS; i++) {
        if (strcmp(questions[i].name, name) == 0) {
            options->path = questions[i].path;
            return true;
        }
    }
    (void)snprintf(ret_error, error_n, "unknown question %s (see tallyd query --help)", name);
    return false;
}

/* /sites and /hotkeys are not about one site, so TALLYD_SITE is not for them. */
static bool takes_site(const char *path)
{
    return strcmp(path, "/sites") != 0 && strcmp(path, "/hotkeys") != 0;
}

/* Take from the environment what the command line leaves open. */
static bool take_environment(struct query_options *options, char *ret_error, size_t error_n)
{
    const char *url = getenv("TALLYD_URL");
    const char *token = getenv("TALLYD_TOKEN");
    const char *site = getenv("TALLYD_SITE");
    bool has_site = site == NULL || *site == '\0' || !takes_site(options->path);
    for (size_t i = 0; i < options->n_parameters; i++) {
        has_site = has_site || strcmp(options->parameters[i].name, "site") == 0;
    }
    if (!has_site) {
        (void)add_parameter(options, "site", site);
    }
    if (options->url == NULL) {
        options->url = url != NULL && *url != '\0' ? url : SERVER_URL_DEFAULT;
        if (server_url_judge(options->url) == SERVER_URL_WRONG) {
            (void)snprintf(ret_error, error_n, "TALLYD_URL must be " SERVER_URL_EXPECTED);
            return false;
        }
    }
    if (options->token == NULL && token != NULL && *token != '\0') {
        options->token = token;
        if (!text_is_graphic(slice_of(token))) {
            (void)snprintf(ret_error, error_n, "TALLYD_TOKEN must be " TOKEN_EXPECTED);
            return false;
        }
    }
    return true;
}

enum query_options_result query_options_parse(
    int argc, char **argv, struct query_options *ret, char *ret_error, size_t error_n)
{
    *ret = (struct query_options){0};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            return QUERY_OPTIONS_HELP;
        }
    }
    for (int i = 1, taken; i < argc; i += taken) {
        taken = 1;
        if (argv[i][0] == '-') {
            taken = take_option(argc - i, argv + i, ret, ret_error, error_n);
            if (taken == 0) {
                return QUERY_OPTIONS_WRONG;
            }
        } else if (!take_question(ret, argv[i], ret_error, error_n)) {
            return QUERY_OPTIONS_WRONG;
        }
    }
    if (ret->path == NULL) {
        (void)snprintf(ret_error, error_n, "a question is missing (see tallyd query --help)");
        return QUERY_OPTIONS_WRONG;
    }
    if (!take_environment(ret, ret_error, error_n)) {
        return QUERY_OPTIONS_WRONG;
    }
    if (server_url_judge(ret->url) != SERVER_URL_GOOD) {
        (void)snprintf(ret_error, error_n, "out of memory");
        return QUERY_OPTIONS_STARVED;
    }
    return QUERY_OPTIONS_RUN;
}
