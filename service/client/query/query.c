#include "service/client/commands.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "handlers/reply/json_memory.h"
#include "service/client/query/query_http.h"
#include "service/client/query/query_table.h"
#include "service/log/escape.h"

enum exit_status { EXIT_DONE = 0, EXIT_REFUSED = 1, EXIT_USAGE = 2 };

/* Print one line on stderr. */
static void say(const char *what, const char *text)
{
    fprintf(stderr, "tallyd query: %s%s", what, *what != '\0' && *text != '\0' ? ": " : "");
    escape_print(text, stderr);
    fputc('\n', stderr);
}

/* Say which option a problem document is about, and what is wrong. */
static void say_problem(long status, const json_t *problem)
{
    const json_t *error = json_array_get(json_object_get(problem, "errors"), 0);
    const char *parameter = json_string_value(json_object_get(error, "parameter"));
    const char *detail = json_string_value(json_object_get(problem, "detail"));
    char what[96];
    if (parameter != NULL) { /* the option is named here: take the detail that does not name it */
        const char *own = json_string_value(json_object_get(error, "detail"));
        detail = own != NULL ? own : detail;
        (void)snprintf(what, sizeof(what), "--%.60s", parameter);
        for (char *at = what; *at != '\0'; at++) { /* new_within is --new-within */
            *at = *at == '_' ? '-' : *at;
        }
    } else {
        (void)snprintf(what, sizeof(what), "the server answers %ld%s", status,
            status == 404 ? " (is --url right?)" : "");
    }
    say(what, detail != NULL ? detail : "");
}

/* Say what a table has no column for. */
static void say_notes(const json_t *answer)
{
    if (json_is_true(json_object_get(answer, "spans_rotation"))) {
        say("note", "the window spans rotations: visitors without an id are new after each");
    }
    if (json_is_true(json_object_get(answer, "clamped"))) {
        say("note", "an estimate of visitors was above the page views, and was cut to them");
    }
    if (json_is_false(json_object_get(answer, "counted"))) {
        say("note", "the server does not count this: see its options dimensions and props");
    }
    json_int_t other = json_integer_value(json_object_get(answer, "other"));
    if (other > 0) {
        char text[96];
        (void)snprintf(text, sizeof(text),
            "a cap put names together: %" JSON_INTEGER_FORMAT " are counted as (other)", other);
        say("note", text);
    }
    if (json_is_false(json_object_get(json_object_get(answer, "intersection"), "significant"))) {
        say("note", "the intersection is smaller than its error: it may as well be nothing");
    }
}

static bool print_rows(const struct query_options *options, json_t *answer)
{
    if (!json_is_object(answer)) {
        say("the server's answer is no table", "");
        return false;
    }
    struct query_table *table = query_table_new(answer);
    bool printed = table != NULL;
    if (printed && options->format == QUERY_CSV) {
        printed = query_table_print_csv(table, stdout);
    } else if (printed) {
        query_table_print(table, stdout);
    }
    if (!printed) {
        say("out of memory", "");
    }
    query_table_free(table);
    return printed;
}

static bool print_answer_rows(const struct query_options *options, json_t *answer)
{
    json_t *cover = json_object_get(answer, "cover");
    if (!print_rows(options, answer)) {
        return false;
    }
    if (options->format == QUERY_TABLE && json_object_get(cover, "list") != NULL) { /* --explain */
        fputc('\n', stdout);
        if (!print_rows(options, cover)) {
            return false;
        }
    }
    say_notes(answer);
    return true;
}

static bool print_answer(const struct query_options *options, const struct query_answer *answer)
{
    json_t *json =
        json_loadb(answer->text.p != NULL ? answer->text.p : "", answer->text.n, 0, NULL);
    bool good = answer->status == 200 && json != NULL;
    if (json_memory_failed()) { /* a text that had no room may lack a byte */
        say("out of memory", "");
        good = false;
    } else if (!good) {
        say_problem(answer->status, json);
    } else if (options->format == QUERY_JSON) {
        (void)fwrite(answer->text.p, 1, answer->text.n, stdout);
        (void)fputc('\n', stdout);
    } else {
        good = print_answer_rows(options, json);
    }
    json_decref(json);
    return good;
}

static int ask(const struct query_options *options)
{
    struct query_answer answer;
    bool good = false;
    query_http_get(options, &answer);
    if (answer.status == 0) {
        say("", answer.error);
    } else {
        good = print_answer(options, &answer);
    }
    buffer_release(&answer.text);
    return good ? EXIT_DONE : EXIT_REFUSED;
}

int query_main(int argc, char **argv)
{
    json_memory_watch();
    struct query_options *options = calloc(1, sizeof(*options));
    char error[256];
    int status = EXIT_REFUSED;
    if (options == NULL) {
        say("out of memory", "");
        return status;
    }
    switch (query_options_parse(argc, argv, options, error, sizeof(error))) {
    case QUERY_OPTIONS_HELP:
        query_options_print_help(stdout);
        status = EXIT_DONE;
        break;
    case QUERY_OPTIONS_WRONG:
        say("", error);
        status = EXIT_USAGE;
        break;
    case QUERY_OPTIONS_STARVED:
        say("", error);
        break;
    case QUERY_OPTIONS_RUN:
        status = ask(options);
        break;
    }
    free(options);
    return status;
}
