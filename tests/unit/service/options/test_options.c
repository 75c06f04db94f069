#include "service/options/options.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "handlers/dimension/page_rules.h"
#include "service/options/option_table.h"
#include "service/options/option_value.h"

TestSuite(options, .timeout = 60);

#define LIST(...) ((char *const[]){__VA_ARGS__, NULL})
#define NO_ENV    ((char *const[]){NULL})

static char text_of[16][64]; /* each test is a process of its own */

/* A writable copy of a literal, for argv. */
static char *arg(const char *literal)
{
    static unsigned next;
    char *copy = text_of[next++ % 16];

    (void)snprintf(copy, sizeof(text_of[0]), "%s", literal);
    return copy;
}

/* A file of its own with @content; its name, to be unlinked by the caller. */
static const char *make_file(const char *content, size_t n)
{
    static char path[sizeof("/tmp/tallyd-options-XXXXXX")];

    (void)snprintf(path, sizeof(path), "/tmp/tallyd-options-XXXXXX");
    int fd = mkstemp(path);

    cr_assert(fd >= 0);
    cr_assert_eq(write(fd, content, n), (ssize_t)n);
    cr_assert_eq(close(fd), 0);
    return path;
}

static struct options load_flag(const char *flag)
{
    char error[OPTIONS_ERROR] = "";
    struct options options;

    cr_assert(
        options_load(&options, 1, LIST(arg(flag)), NO_ENV, false, error), "%s: %s", flag, error);
    return options;
}

/* Loading fails and the error holds both words. */
static void refuses(
    int argc, char *const *argv, char *const *environment, const char *word, const char *other_word)
{
    char error[OPTIONS_ERROR] = "";
    struct options options;

    cr_assert_not(options_load(&options, argc, argv, environment, false, error), "%s", word);
    cr_expect(strstr(error, word) != NULL, "no \"%s\" in: %s", word, error);
    cr_expect(strstr(error, other_word) != NULL, "no \"%s\" in: %s", other_word, error);
    options_release(&options);
}

static void refuses_flag(const char *flag, const char *word, const char *other_word)
{
    refuses(1, LIST(arg(flag)), NO_ENV, word, other_word);
}

static void refuses_file(const char *content, size_t n, const char *word, const char *other_word)
{
    const char *path = make_file(content, n);
    char environment[64];

    (void)snprintf(environment, sizeof(environment), "TALLYD_CONFIG=%s", path);
    refuses(0, NULL, LIST(environment), word, other_word);
    cr_assert_eq(unlink(path), 0);
}

static char *printed(const struct options *options)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);

    cr_assert(out != NULL);
    if (options != NULL) {
        options_print(options, out);
    } else {
        options_print_help(out);
    }
    cr_assert_eq(fclose(out), 0);
    return text;
}

/* ---- what works ---- */

Test(options, defaults)
{
    char error[OPTIONS_ERROR] = "";
    struct options options;

    cr_assert(options_load(&options, 0, NULL, NO_ENV, false, error), "%s", error);
    cr_expect_str_eq(options.listen, "127.0.0.1:8080");
    cr_expect_str_eq(options.redis, "");
    cr_expect_str_eq(options.data_dir, "./data");
    cr_expect_eq(options.fsync, REDIS_FSYNC_ALWAYS);
    cr_expect_eq(
        options.redis_memory, sysconf(_SC_PHYS_PAGES) / 2 * (int64_t)sysconf(_SC_PAGESIZE));
    cr_expect_eq(options.partitions, 16);
    cr_expect_eq(options.retention.keep_s[LEVEL_MINUTE], 48 * 3600);
    cr_expect_eq(options.retention.keep_s[LEVEL_HOUR], 62 * 86400);
    cr_expect_eq(options.retention.keep_s[LEVEL_DAY], 1100 * 86400);
    cr_expect_eq(options.retention.keep_s[LEVEL_MONTH], KEEP_FOREVER);
    cr_expect_eq(options.max_body, 8 << 20);
    cr_expect_eq(options.max_body_memory, 64 << 20);
    cr_expect_eq(options.max_future_s, 300);
    cr_expect_eq(options.visit_timeout_s, 1800);
    cr_expect_eq(options.visitor_rotation, ROTATE_NEVER);
    cr_expect_eq(options.request_timeout_ms, 10000);
    cr_expect_eq(options.queue, 50000);
    cr_expect_eq(options.log_format, LOG_SYNTAX_LOGFMT);
    cr_expect_eq(options.log_level, LOG_LEVEL_INFO);
    cr_expect_not(options.insecure);
    options_release(&options);
    options_release(&options);
}

Test(options, every_name_is_unique_and_explained)
{
    for (size_t i = 0; i < option_table_n; i++) {
        cr_expect(option_table[i].unit != NULL && option_table[i].help != NULL, "%s",
            option_table[i].name);
        for (size_t j = 0; j < i; j++) {
            cr_expect(strcmp(option_table[i].name, option_table[j].name) != 0, "%s",
                option_table[i].name);
        }
    }
}

Test(options, flag_before_environment_before_file_before_default)
{
    static const char file[] = "# all of it\n\n  partitions = 3\r\nreaders=4\n\tqueue = 20000";
    const char *path = make_file(file, sizeof(file) - 1);
    char config[64], error[OPTIONS_ERROR] = "";
    char *const argv[] = {arg("--config"), config, arg("--partitions=1"), NULL};
    char *const environment[] = {
        arg("HOME=/"), arg("TALLYD_PARTITIONS=2"), arg("TALLYD_READERS=5"), NULL};
    struct options options;

    (void)snprintf(config, sizeof(config), "%s", path);
    cr_assert(options_load(&options, 3, argv, environment, false, error), "%s", error);
    cr_expect_eq(options.partitions, 1);
    cr_expect_eq(options.readers, 5);
    cr_expect_eq(options.queue, 20000);
    cr_expect_eq(options.max_connections, 4096);

    char *text = printed(&options), line[128];

    (void)snprintf(line, sizeof(line), "file %s:5\n", path);
    cr_expect(strstr(text, line) != NULL, "%s", text);
    cr_expect(strstr(text, " flag\n") != NULL && strstr(text, " environment\n") != NULL);
    free(text);
    options_release(&options);
    cr_assert_eq(unlink(path), 0);
}

Test(options, forms_of_flags)
{
    char error[OPTIONS_ERROR] = "";
    char *const argv[] = {arg("--insecure"), arg("--readers"), arg("3"), arg("--readers=4"),
        arg("--redis="), arg("--fsync"), arg("everysec"), NULL};
    struct options options;

    cr_assert(options_load(&options, 7, argv, NO_ENV, false, error), "%s", error);
    cr_expect(options.insecure);
    cr_expect_eq(options.readers, 4, "the last one holds");
    cr_expect_eq(options.fsync, REDIS_FSYNC_EVERYSEC);
    options_release(&options);

    options = load_flag("--insecure=off");
    cr_expect_not(options.insecure);
    options_release(&options);
}

Test(options, names_of_tests_and_build_in_the_environment_are_passed_over)
{
    char error[OPTIONS_ERROR] = "";
    struct options options;

    cr_assert(options_load(&options, 0, NULL,
                  LIST(arg("TALLYD_TEST_REDIS=x"), arg("TALLYD_TOOLS=x"), arg("TALLYD_BIN=x"),
                      arg("TALLYD_URL=http://x"), arg("TALLYD_TOKEN=x"), arg("TALLYD_SITE=x"),
                      arg("TALLYD=x"), arg("XTALLYD_FOO=x")),
                  false, error),
        "%s", error);
    options_release(&options);
}

Test(options, bounds_are_allowed)
{
    static const char *const flags[] = {"--partitions=1", "--partitions=64", "--max-body=1KiB",
        "--keep-minutes=2h", "--keep-hours=2d", "--keep-days=32d", "--keep-months=366d",
        "--keep-minutes=forever", "--visit-timeout=24h", "--visit-timeout=1s",
        "--request-timeout=100ms", "--request-timeout=1h", "--max-future=0s", "--queue=10000",
        "--redis-memory=16MiB", "--threads=0", "--max-body=67108864", "--listen=0.0.0.0:0"};

    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        struct options options = load_flag(flags[i]);

        options_release(&options);
    }
}

Test(options, memory_is_printed_as_it_holds)
{
    struct options options = load_flag("--redis-memory=half");
    char number[OPTION_VALUE_TEXT], *text = printed(&options);

    cr_expect(options.redis_memory > 0);
    cr_expect(strstr(text, option_format_size(options.redis_memory, number)) != NULL, "%s", text);
    free(text);
    options_release(&options);
}

Test(options, a_burst_as_the_limit_is_a_number_where_there_is_one)
{
    struct options options = load_flag("--ingest-limit=1000/1s");
    cr_expect_eq(options.ingest_burst, 999);
    options_release(&options);
    options = load_flag("--ingest-burst=limit");
    cr_expect_eq(options.ingest_burst, OPTION_AS_LIMIT);
    options_release(&options);
}

/* A line of the file that has a name in it stands in the same columns as the others. */
Test(options, columns_are_as_wide_as_what_stands_in_them)
{
    static const char *const columns[] = {"value", "unit", "default", "from"};
    static const char file[] = "site.of-a-rather-long-name.tz = America/Argentina/Buenos_Aires\n";
    const char *path = make_file(file, sizeof(file) - 1);
    char error[OPTIONS_ERROR] = "", config[128], *rest = NULL;
    (void)snprintf(config, sizeof(config), "TALLYD_CONFIG=%s", path);
    struct options options;
    cr_assert(options_load(&options, 0, NULL, LIST(config), false, error), "%s", error);
    char *text = printed(&options), *head = strtok_r(text, "\n", &rest), *line;
    while ((line = strtok_r(NULL, "\n", &rest)) != NULL) {
        for (size_t i = 0; i < 4 && strncmp(line, "dimensions ", 11) != 0; i++) { /* too long */
            size_t at = (size_t)(strstr(head, columns[i]) - head);
            cr_expect(
                strlen(line) > at && line[at] != ' ' && line[at - 1] == ' ' && line[at - 2] == ' ',
                "%s\n%s", head, line);
        }
    }
    free(text);
    options_release(&options);
    cr_assert_eq(unlink(path), 0);
}

Test(options, print_names_every_option_and_no_password)
{
    struct options options = load_flag("--redis=redis://u:s3cret@db:6379/2");
    char *text = printed(&options), *help = printed(NULL);

    cr_expect_str_eq(options.redis, "redis://u:s3cret@db:6379/2");
    cr_expect(strstr(text, "redis://u:***@db:6379/2") != NULL, "%s", text);
    cr_expect(strstr(text, "s3cret") == NULL);
    for (size_t i = 0; i < option_table_n; i++) {
        char line[64];

        (void)snprintf(line, sizeof(line), "\n%s ", option_table[i].name);
        cr_expect(strstr(text, line) != NULL, "%s", line);
        (void)snprintf(line, sizeof(line), "\n  --%s", option_table[i].name);
        cr_expect(strstr(help, line) != NULL, "%s", line);
    }
    free(text);
    free(help);
    options_release(&options);
}

/* ---- what is refused ---- */

Test(options, refused_flags_are_named)
{
    char *const none[] = {arg("--data-dir"), arg("--insecure"), NULL};

    refuses_flag("--partition=3", "unknown option --partition;", "--help");
    refuses_flag("serve", "unexpected argument \"serve\"", "serve");
    refuses_flag("-h", "unexpected argument", "-h");
    refuses_flag("--partitions", "--partitions needs a value", "from 1 to 1024");
    refuses(2, none, NO_ENV, "--data-dir needs a value", "path");
    refuses(2, LIST(arg("--insecure"), arg("off")), NO_ENV, "unexpected argument \"off\"",
        "write --insecure=off");
    refuses_flag("--partitions=0", "--partitions: \"0\"", "from 1 to 1024");
    refuses_flag("--partitions=1025", "\"1025\"", "from 1 to 1024, or auto");
    refuses_flag("--partitions=1x", "\"1x\"", "from 1 to 1024");
    refuses_flag("--partitions=-1", "\"-1\"", "from 1 to 1024");
    refuses_flag("--partitions=", "\"\"", "from 1 to 1024");
    refuses_flag("--max-body=1023", "\"1023\"", "from 1KiB to 1GiB");
    refuses_flag("--redis-memory=1KiB", "\"1KiB\"", "or half");
    refuses_flag("--keep-minutes=1h", "\"1h\"", "from 2h");
    refuses_flag("--keep-minutes=7200500ms", "\"7200500ms\"", "whole seconds from 2h");
    refuses_flag("--keep-minutes=99999999999999999d", "--keep-minutes", "or forever");
    refuses_flag("--max-future=forever", "\"forever\"", "from 0s to 1d");
    refuses_flag("--max-future=1ms", "\"1ms\"", "a duration of whole seconds from 0s");
    refuses_flag("--log-level=trace", "\"trace\"", "error, warn, info or debug");
    refuses_flag("--insecure=maybe", "\"maybe\"", "on, off, true or false");
    refuses_flag("--data-dir=", "--data-dir: \"\"", "not empty");
    refuses_flag("--queue=9999", "\"9999\"", "from 10000");
    refuses_flag("--listen=:80", "\":80\"", "HOST:PORT");
    refuses_flag("--redis=redis-cluster://a:1,b:2/0", "--redis", "no databases");
    refuses_flag("--redis=redis-sentinel://a:1", "--redis", "name of the master");
    refuses_flag("--redis=redis-clusters://a", "redis-cluster://host", "redis-sentinel://host");
    refuses_flag("--log-hold=10", "--log-hold", "\"10\" is refused, allowed: a duration");
    /* what a check says is wrong is not what it allows */
    refuses_flag("--redis=redis://u:p@", "--redis", "is refused: a host is missing");
    refuses_flag("--ingest-limit=0/1s", "--ingest-limit", "is refused: COUNT must be");
    refuses_flag("--ignore-ip=1.2.3", "--ignore-ip", "is refused: a network is");
    refuses_flag("--max-body=65MiB", "max-body-memory: \"64MiB\"", "\"65MiB\" (--max-body)");
    refuses_file(
        "#\nmax-body = 65MiB\n", 19, "default of max-body-memory: \"64MiB\"", ":2: max-body");
}

/* A list may be empty, but none of its elements. */
Test(options, lists_have_no_empty_element)
{
    static const char *const lists[][2] = {{"trusted-proxies", "10.0.0.1"},
        {"ignore-ip", "10.0.0.1"}, {"cors-origins", "https://a.example"}, {"dimensions", "os"},
        {"visitors-by", "os"}, {"deny-sources", "a.example"}, {"lock-redis", "unix:/a"},
        {"site.a.origins", "https://a.example"}, {"site.a.dimensions", "os"},
        {"site.a.visitors-by", "os"}, {"site.a.props", "plan"}};
    static const char *const around[][2] = {{"", ","}, {"", ", "}, {",", ""}, {",", ","}};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        bool is_flag = strchr(lists[i][0], '.') == NULL;
        char text[64];
        for (size_t form = 0; form < sizeof(around) / sizeof(around[0]); form++) {
            int n = snprintf(text, sizeof(text), "%s%s=%s%s%s", is_flag ? "--" : "", lists[i][0],
                around[form][0], lists[i][1], around[form][1]);
            if (is_flag) {
                refuses_flag(text, lists[i][0], "is refused");
            } else {
                refuses_file(text, (size_t)n, lists[i][0], "is refused");
            }
        }
        if (is_flag) {
            (void)snprintf(text, sizeof(text), "--%s=,", lists[i][0]);
            refuses_flag(text, lists[i][0], "is refused");
            (void)snprintf(text, sizeof(text), "--%s=", lists[i][0]);
            struct options options = load_flag(text);
            options_release(&options);
        }
    }
}

Test(options, control_characters_are_not_echoed)
{
    refuses_flag("--log-level=\x1b[31m", "\\u001b[31m", "--log-level");
}

Test(options, refused_environment_is_named)
{
    refuses(0, NULL, LIST(arg("TALLYD_KEEP_DAY=3d")), "TALLYD_KEEP_DAY;", "unknown");
    refuses(0, NULL, LIST(arg("TALLYD_listen=x:1")), "TALLYD_listen", "unknown");
    refuses(0, NULL, LIST(arg("TALLYD_KEEP-DAYS=40d")), "TALLYD_KEEP-DAYS", "unknown");
    refuses(0, NULL, LIST(arg("TALLYD_=x")), "TALLYD_;", "unknown");
    refuses(0, NULL, LIST(arg("TALLYD_KEEP_DAYS=3d")), "TALLYD_KEEP_DAYS: \"3d\"", "from 32d");
    /* also where a flag would hold instead */
    refuses(1, LIST(arg("--readers=1")), LIST(arg("TALLYD_READERS=no")), "TALLYD_READERS: \"no\"",
        "from 1 to 64");
}

Test(options, refused_file_lines_are_numbered)
{
    static const char twice[] = "readers = 1\n\nreaders = 2\n", nul[] = "readers = 1\0\n";

    refuses_file("\nreader = 1\n", 12, ":2: unknown option \"reader\"", "tallyd-options-");
    refuses_file(twice, sizeof(twice) - 1, ":3: readers stands here a second time", "line 1");
    refuses_file("readers\n", 8, ":1: no `name = value`", "tallyd-options-");
    refuses_file("= 3\n", 4, ":1: unknown option \"\"", "tallyd-options-");
    refuses_file("#\nreaders = 0 # few\n", 20, ":2: readers: \"0 # few\"", "from 1 to 64");
    refuses_file("config = /x\n", 12, ":1: config", "flag");
    refuses_file(nul, sizeof(nul) - 1, ":1: a NUL byte", "tallyd-options-");
    refuses_file("\xff\xfer\0e\0", 6, ": UTF-16", "save it as UTF-8");
    refuses_file("\xfe\xff\0r\0e", 6, ": UTF-16", "save it as UTF-8");
}

/* Editors of Windows put a byte order mark there. */
/* Lines of a file that nobody has looked at reach a terminal. */
Test(options, control_characters_are_not_shown)
{
    refuses_file("a\x1b[31m = 1\n", 10, "unknown option \"a?[31m\"", ":1: ");
    refuses_file("section.a\x1b = /x\n", 16, "section.a?: \"/x\"", ":1: ");
    refuses_file("policy.a = \x1b[31m\n", 17, "policy.a: \"?[31m\"", ":1: ");
    refuses_flag("--a\x1b[31m", "--a?[31m", "unknown option");
}

Test(options, sections_beyond_a_bound_are_named_with_their_line)
{
    char text[4096];
    size_t n = 0;
    for (int i = 0; i <= PAGE_SECTIONS_MAX; i++) {
        n += (size_t)snprintf(text + n, sizeof(text) - n, "section.s%d = /%d/\n", i, i);
    }
    refuses_file(text, n, ":101: section.s100: more than 100 sections", "tallyd-options-");
    for (n = 0; n < 9 * strlen("section.0 = /\n");) {
        n += (size_t)snprintf(
            text + n, sizeof(text) - n, "section.%zu = /\n", n / strlen("section.0 = /\n"));
    }
    refuses_file(
        text, n, ":1: section.0: its pages are in more than 8 sections", "tallyd-options-");
}

Test(options, a_byte_order_mark_begins_the_file)
{
    static const char file[] = "\xef\xbb\xbf# remark\nreaders = 3\n",
                      other[] = "\xef\xbb\xbfreaders = 4";
    const struct {
        const char *text;
        size_t n;
        int64_t readers;
    } rows[] = {{file, sizeof(file) - 1, 3}, {other, sizeof(other) - 1, 4}};
    for (size_t i = 0; i < 2; i++) {
        const char *path = make_file(rows[i].text, rows[i].n);
        char environment[64], error[OPTIONS_ERROR] = "";
        struct options options;
        (void)snprintf(environment, sizeof(environment), "TALLYD_CONFIG=%s", path);
        cr_assert(options_load(&options, 0, NULL, LIST(environment), false, error), "%s", error);
        cr_expect_eq(options.readers, rows[i].readers);
        options_release(&options);
        (void)unlink(path);
    }
    refuses_file("readers = 1\n\xef\xbb\xbfreaders = 2\n", 27, ":2: unknown option", "readers");
}

Test(options, named_entries_of_the_file)
{
    static const char file[] = "site.a.tz = UTC\nreaders = 3\nsite.b.c.tz=UTC\n";
    const char *path = make_file(file, sizeof(file) - 1);
    char environment[64], error[OPTIONS_ERROR] = "";
    struct options options;

    (void)snprintf(environment, sizeof(environment), "TALLYD_CONFIG=%s", path);
    cr_assert(options_load(&options, 0, NULL, LIST(environment), false, error), "%s", error);
    cr_assert_eq(options.n_entries, 2);
    cr_expect_str_eq(options.entries[0].name, "a");
    cr_expect_str_eq(options.entries[1].name, "b.c");
    cr_expect_str_eq(options.entries[1].value, "UTC");
    cr_expect_eq(options.entries[1].line, 3);

    char *text = printed(&options);

    cr_expect(strstr(text, "site.b.c.tz") != NULL);
    free(text);
    options_release(&options);
    cr_assert_eq(unlink(path), 0);
}

Test(options, refused_entries_are_named)
{
    static const char twice[] = "site.a.tz = UTC\nsite.a.tz = UTC\n";

    refuses_file(twice, sizeof(twice) - 1, ":2: site.a.tz stands here a second time", "line 1");
    refuses_file("site.tz = UTC\n", 14, ":1: unknown option \"site.tz\"", "tallyd-options-");
    refuses_file("site..tz = UTC\n", 15, ":1: unknown option \"site..tz\"", "tallyd-options-");
    refuses_file("\nsite.a.tz = Nowhere/X\n", 23, ":2: site.a.tz: \"Nowhere/X\"", "refused");
    refuses_file("site.a.tz = ../UTC\n", 19, ":1: site.a.tz: \"../UTC\"", "IANA name");
    refuses_file("site.A.tz = UTC\n", 16, ":1: site.A.tz: \"UTC\"", "refused");
}

Test(options, file_that_cannot_be_read)
{
    refuses_flag("--config=/nonexistent/x", "/nonexistent/x (option config)", "No such file");
    refuses_flag("--config=/tmp", "cannot read the file /tmp", "directory");
    refuses_flag("--config=/dev/zero", "/dev/zero", "1 MiB");
}

Test(options, errors_show_no_password)
{
    static const char *const urls[] = {"redis://u:s3cret@h:0", "redis://u:s3cret@h", "u:s3cret@h:1",
        "redis://s3cret@h:1", "redis://u:s3cret", "redis:/u:s3cret@h:1", "redis://u:a/s3cret@h:1",
        "redis://h:1/?password=s3cret", "rediss://u:s3cret@h:1", "unix://u:s3cret@h",
        "redis-cluster://u:s3cret@h:1/0", "REDIS://u:s3cret@h:1", "redis://u:x@s3cret@h:0"};

    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        char error[OPTIONS_ERROR], flag[64], bare[64];
        struct options options;

        (void)snprintf(flag, sizeof(flag), "--redis=%s", urls[i]);
        (void)snprintf(bare, sizeof(bare), "%s", urls[i]);
        cr_expect_not(options_load(&options, 1, LIST(flag), NO_ENV, false, error), "%s", urls[i]);
        cr_expect(strstr(error, "s3cret") == NULL, "%s", error);
        cr_expect(strstr(error, "--redis: \"") == error, "%s", error);
        cr_expect_not(options_load(&options, 1, LIST(bare), NO_ENV, false, error), "%s", urls[i]);
        cr_expect(strstr(error, "s3cret") == NULL, "%s", error);
    }
}
