#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "service/client/import_options.h"

/* What is not changed by anybody, though argv's type does not say so. */
#define ARGS(...)                                                                                  \
    (const char *[])                                                                               \
    {                                                                                              \
        "import", __VA_ARGS__, NULL                                                                \
    }

static char error[256];

static enum import_options_result parse(const char **args, struct import_options *ret)
{
    int n = 0;
    while (args[n] != NULL) {
        n++;
    }
    error[0] = '\0';
    return import_options_parse(n, (char **)(uintptr_t)args, ret, error, sizeof(error));
}

Test(import_options, defaults)
{
    struct import_options o = {0};
    cr_assert_eq(parse(ARGS("-"), &o), IMPORT_OPTIONS_RUN, "%s", error);
    cr_expect_eq(o.format, LOG_FORMAT_AUTO);
    cr_expect(o.site == NULL && o.token == NULL);
    cr_expect_str_eq(o.url, "http://127.0.0.1:8080");
    cr_expect_str_eq(o.path, "-");
    cr_expect_eq(o.keep[0].s, 48 * 3600);
}

Test(import_options, each_option_in_both_forms)
{
    struct import_options o = {0};
    cr_assert_eq(parse(ARGS("--format=common", "--site", "a.b-2", "x.log", "--url=https://h/t/",
                           "--token", "t", "--keep-minutes=7d"),
                     &o),
        IMPORT_OPTIONS_RUN, "%s", error);
    cr_expect_eq(o.format, LOG_FORMAT_COMMON);
    cr_expect_str_eq(o.site, "a.b-2");
    cr_expect_str_eq(o.url, "https://h/t/");
    cr_expect_str_eq(o.token, "t");
    cr_expect_str_eq(o.path, "x.log");
    cr_expect_eq(o.keep[0].s, 7 * 86400);
}

Test(import_options, follow)
{
    struct import_options o = {0};
    cr_assert_eq(parse(ARGS("a.log"), &o), IMPORT_OPTIONS_RUN, "%s", error);
    cr_expect(!o.follow && o.state == NULL);
    cr_assert_eq(
        parse(ARGS("--follow", "--state", "s", "a.log"), &o), IMPORT_OPTIONS_RUN, "%s", error);
    cr_expect(o.follow);
    cr_expect_str_eq(o.state, "s");
    cr_expect_eq(parse(ARGS("--follow", "-"), &o), IMPORT_OPTIONS_WRONG);
    cr_expect(strstr(error, "--follow needs a file") != NULL, "%s", error);
    cr_expect_eq(parse(ARGS("--follow", "--state=", "a.log"), &o), IMPORT_OPTIONS_WRONG);
}

Test(import_options, times)
{
    static const struct {
        const char *text;
        int64_t s;
    } rows[] = {{"90s", 90}, {"5m", 300}, {"48h", 172800}, {"2w", 1209600},
        {"forever", IMPORT_KEEP_FOREVER}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct import_options o = {0};
        cr_assert_eq(
            parse(ARGS("--keep-minutes", rows[i].text, "-"), &o), IMPORT_OPTIONS_RUN, "%s", error);
        cr_expect_eq(o.keep[0].s, rows[i].s, "%s", rows[i].text);
    }
}

Test(import_options, behind_two_dashes_all_is_a_file)
{
    struct import_options o = {0};
    cr_assert_eq(parse(ARGS("--", "--help"), &o), IMPORT_OPTIONS_RUN, "%s", error);
    cr_expect_str_eq(o.path, "--help");
}

Test(import_options, help_comes_before_all_that_is_wrong)
{
    struct import_options o = {0};
    cr_expect_eq(parse(ARGS("--nonsense", "--help"), &o), IMPORT_OPTIONS_HELP);
}

Test(import_options, the_environment_gives_way_to_the_command_line)
{
    struct import_options o = {0};
    (void)setenv("TALLYD_SITE", "env", 1);
    (void)setenv("TALLYD_FORMAT", "ndjson", 1);
    (void)setenv("TALLYD_TOKEN", "", 1); /* as if it were not set */
    cr_assert_eq(parse(ARGS("--site=line", "-"), &o), IMPORT_OPTIONS_RUN, "%s", error);
    cr_expect_str_eq(o.site, "line");
    cr_expect_eq(o.format, LOG_FORMAT_NDJSON);
    cr_expect(o.token == NULL);
    (void)setenv("TALLYD_FORMAT", "xml", 1);
    cr_expect_eq(parse(ARGS("-"), &o), IMPORT_OPTIONS_WRONG);
    cr_expect(strstr(error, "TALLYD_FORMAT must be auto, ndjson, combined") == error, "%s", error);
    (void)unsetenv("TALLYD_SITE");
    (void)unsetenv("TALLYD_FORMAT");
    (void)unsetenv("TALLYD_TOKEN");
}

Test(import_options, what_is_wrong_is_named)
{
    static const struct {
        const char *args[3], *told;
    } rows[] = {
        {{"--format", "xml", "-"}, "--format must be"},
        {{"--format=", "-"}, "--format must be"},
        {{"--site", "A", "-"}, "--site must be"},
        {{"--site", "", "-"}, "--site must be"},
        {{"--site=-a", "-"}, "--site must be"},
        {{"--site=a/b", "-"}, "--site must be"},
        {{"--site=0123456789012345678901234567890123456789012345678901234567890123x", "-"},
            "--site must be"},
        {{"--url", "ftp://h", "-"}, "--url must be"},
        {{"--url", "http://u:p@h", "-"}, "--url must be"},
        {{"--url=http://h/?a", "-"}, "--url must be"},
        {{"--token", "a b", "-"}, "--token must be"},
        {{"--token=", "-"}, "--token must be"},
        {{"--keep-minutes", "48", "-"}, "--keep-minutes must be"},
        {{"--keep-minutes", "0h", "-"}, "--keep-minutes must be"},
        {{"--keep-minutes", "1hh", "-"}, "--keep-minutes must be"},
        {{"--keep-minutes=99999999999999999999h", "-"}, "--keep-minutes must be"},
        {{"-", "--site"}, "--site needs a value"},
        {{"-", "--include", "nonsense"},
            "--include must be method, robot, error, redirect or file"},
        {{"-", "--include", "malformed"}, "--include must be"},
        {{"-", "--include=path"}, "--include must be"},
        {{"-", "--include=/a"}, "--include must be"},
        {{"-", "--exclude", "admin"}, "--exclude must be"},
        {{"-", "--exclude="}, "--exclude must be"},
        {{"-", "--only", "robot"}, "--only must be /PREFIX"},
        {{"-", "--all=yes"}, "--all must be on or off"},
        {{"-", "--only"}, "--only needs a value"},
        {{"--sites", "a", "-"}, "unknown option --sites"},
        {{"-x", "-"}, "unknown option -x"},
        {{"a", "b"}, "one FILE at a time, and there is also b"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct import_options o = {0};
        const char *args[5] = {"import"};
        for (size_t k = 0; k < 3; k++) {
            args[k + 1] = rows[i].args[k];
        }
        cr_expect_eq(parse(args, &o), IMPORT_OPTIONS_WRONG, "row %zu", i);
        cr_expect(strncmp(error, rows[i].told, strlen(rows[i].told)) == 0, "row %zu: %s", i, error);
    }
    struct import_options o = {0};
    cr_expect_eq(parse((const char *[]){"import", NULL}, &o), IMPORT_OPTIONS_WRONG);
    cr_expect(error[0] != '\0');
}

Test(import_options, flags_and_what_may_be_repeated)
{
    struct import_options o = {0};
    cr_assert_eq(
        parse(ARGS("--include", "robot", "--json", "--exclude=/a,b", "--site-from-host",
                  "--include=file", "--exclude", "error", "--only", "/x", "--only=/y", "-"),
            &o),
        IMPORT_OPTIONS_RUN, "%s", error);
    cr_expect(o.json && o.site_from_host && !o.filter.all);
    cr_expect_eq(o.filter.included, 1u << IMPORT_ROBOT | 1u << IMPORT_FILE);
    cr_expect_eq(o.filter.excluded, 1u << IMPORT_ERROR);
    cr_assert(o.filter.n_exclude == 1 && o.filter.n_only == 2);
    cr_expect(slice_equal(o.filter.exclude[0], SLICE("/a,b")));
    cr_expect(slice_equal(o.filter.only[1], SLICE("/y")));
    cr_assert_eq(parse(ARGS("--all", "--all=off", "-"), &o), IMPORT_OPTIONS_RUN, "%s", error);
    cr_expect_not(o.filter.all);
}

Test(import_options, flags_and_lists_in_the_environment)
{
    struct import_options o = {0};
    (void)setenv("TALLYD_ALL", "on", 1);
    (void)setenv("TALLYD_JSON", "off", 1);
    (void)setenv("TALLYD_EXCLUDE", "robot,/a,/b", 1);
    for (int i = 0; i < 2; i++) { /* nothing is changed by reading it */
        cr_assert_eq(parse(ARGS("--exclude=/c", "-"), &o), IMPORT_OPTIONS_RUN, "%s", error);
        cr_expect(o.filter.all && !o.json);
        cr_expect_eq(o.filter.excluded, 1u << IMPORT_ROBOT);
        cr_assert_eq(o.filter.n_exclude, 3);
        cr_expect(slice_equal(o.filter.exclude[1], SLICE("/b")));
    }
    (void)setenv("TALLYD_EXCLUDE", "robot,", 1);
    cr_expect_eq(parse(ARGS("-"), &o), IMPORT_OPTIONS_WRONG);
    cr_expect(strstr(error, "TALLYD_EXCLUDE must be") == error, "%s", error);
    (void)setenv("TALLYD_EXCLUDE", "", 1);
    (void)setenv("TALLYD_ALL", "1", 1);
    cr_expect_eq(parse(ARGS("-"), &o), IMPORT_OPTIONS_WRONG);
    cr_expect_str_eq(error, "TALLYD_ALL must be on or off");
    (void)unsetenv("TALLYD_ALL");
    (void)unsetenv("TALLYD_JSON");
    (void)unsetenv("TALLYD_EXCLUDE");
}

Test(import_options, prefixes_have_a_bound)
{
    const char *args[IMPORT_PREFIXES_MAX + 4] = {"import", "-"};
    struct import_options o = {0};
    for (int i = 0; i < IMPORT_PREFIXES_MAX; i++) {
        args[i + 2] = "--only=/a";
    }
    cr_expect_eq(parse(args, &o), IMPORT_OPTIONS_RUN, "%s", error);
    args[IMPORT_PREFIXES_MAX + 2] = "--only=/b";
    cr_expect_eq(parse(args, &o), IMPORT_OPTIONS_WRONG);
    cr_expect_str_eq(error, "--only must be given at most 64 times with a path");
}
