/* options_print.c - what `tallyd serve --help` and `tallyd config` print of the options. */
#include "service/options/options.h"

#include <string.h>

#include "service/options/option_table.h"
#include "service/options/option_text.h"

#define CELL      4200 /* bytes that hold a shown value: a path */
#define COLUMNS   5
#define WIDTH_MAX 40 /* a column is at most so wide; longer values stick out */

/* Print the option's name, and what stands for its value. */
static void print_name(const struct option *option, FILE *out)
{
    static const char *const values[] = {
        [OPTION_STRING] = " TEXT",
        [OPTION_PATH] = " PATH",
        [OPTION_BOOL] = "[=on|off]",
        [OPTION_INTEGER] = " NUMBER",
        [OPTION_SIZE] = " SIZE",
        [OPTION_SECONDS] = " DURATION",
        [OPTION_MILLISECONDS] = " DURATION",
        [OPTION_ENUM] = "",
    };
    (void)fprintf(out, "  --%s%s", option->name, values[option->type]);
    for (size_t i = 0; option->type == OPTION_ENUM && option->words[i] != NULL; i++) {
        (void)fprintf(out, "%s%s", i == 0 ? " " : "|", option->words[i]);
    }
}

void options_print_help(FILE *out)
{
    (void)fputs(
        "Options of serve and config, which may also stand elsewhere (see the end):\n", out);
    for (size_t i = 0; i < option_table_n; i++) {
        const struct option *option = &option_table[i];
        char allowed[256] = "";
        if (option->min != 0 || option->max != 0) {
            option_describe(option, "", allowed, sizeof(allowed));
        }
        print_name(option, out);
        (void)fprintf(out, "\n        %s\n        %s%sdefault: %s\n", option->help, allowed,
            allowed[0] != '\0' ? "; " : "",
            option->fallback[0] != '\0' ? option->fallback : "(empty)");
    }
    (void)fputs("\nIn the configuration file only, once for each name:\n", out);
    for (size_t i = 0; i < option_families_n; i++) {
        const struct option_family *family = &option_families[i];
        (void)fprintf(out, "  %s<name>%s = %s\n        %s\n", family->before, family->after,
            family->unit, family->help);
    }
    (void)fputs(
        "\nEvery option is also TALLYD_<NAME> in the environment (TALLYD_DATA_DIR=/x) and, but "
        "for\n"
        "config, a line `name = value` of the file that --config names.  A flag goes before the\n"
        "environment, the environment before the file.  Sizes: 65536, 64KiB, 8MiB, 1GiB; "
        "durations:\n"
        "500ms, 10s, 30m, 48h, 62d.\n",
        out);
}

struct row {
    char cells[COLUMNS][CELL];
};

/* Put quotes around a value that is empty, or could be taken for two. */
static void fill_cell(const struct option *option, const char *value, char *cell)
{
    char shown[CELL - 2];
    bool quoted = *value == '\0' || strpbrk(value, " \"\\") != NULL;
    option_show(option, value, shown, sizeof(shown));
    (void)snprintf(cell, CELL, "%s%s%s", quoted ? "\"" : "", shown, quoted ? "\"" : "");
}

static void fill_option(const struct options *options, size_t at, struct row *row)
{
    static const char *const sources[] = {"default", "file", "environment", "flag"};
    const struct option *option = &option_table[at];
    const struct option_origin *origin = &options->origins[at];
    (void)snprintf(row->cells[0], CELL, "%s", option->name);
    fill_cell(option, origin->text, row->cells[1]);
    (void)snprintf(row->cells[2], CELL, "%s", option->unit);
    fill_cell(option, option->fallback, row->cells[3]);
    if (origin->source == OPTION_FILE) {
        (void)snprintf(row->cells[4], CELL, "file %s:%u", options->config, origin->line);
    } else {
        (void)snprintf(row->cells[4], CELL, "%s", sources[origin->source]);
    }
}

static void fill_entry(const struct options *options, size_t at, struct row *row)
{
    const struct option_entry *entry = &options->entries[at];
    (void)snprintf(
        row->cells[0], CELL, "%s%s%s", entry->family->before, entry->name, entry->family->after);
    (void)snprintf(row->cells[1], CELL, "\"%s\"", entry->value);
    (void)snprintf(row->cells[2], CELL, "%s", entry->family->unit);
    (void)snprintf(row->cells[3], CELL, "\"\"");
    (void)snprintf(row->cells[4], CELL, "file %s:%u", options->config, entry->line);
}

/* Fill row @at of the table, which has the options first, and then the entries. */
static void fill_row(const struct options *options, size_t at, struct row *row)
{
    if (at < option_table_n) {
        fill_option(options, at, row);
    } else {
        fill_entry(options, at - option_table_n, row);
    }
}

static void print_row(const struct row *row, const size_t *widths, FILE *out)
{
    for (size_t i = 0; i + 1 < COLUMNS; i++) {
        (void)fprintf(out, "%-*s  ", (int)widths[i], row->cells[i]);
    }
    (void)fprintf(out, "%s\n", row->cells[COLUMNS - 1]);
}

void options_print(const struct options *options, FILE *out)
{
    struct row head = {{"option", "value", "unit", "default", "from"}}, row;
    size_t n_rows = option_table_n + options->n_entries, widths[COLUMNS];
    for (size_t j = 0; j < COLUMNS; j++) {
        widths[j] = strlen(head.cells[j]);
    }
    for (size_t i = 0; i < n_rows; i++) {
        fill_row(options, i, &row);
        for (size_t j = 0; j < COLUMNS; j++) {
            size_t width = strlen(row.cells[j]);
            if (width > widths[j] && width <= WIDTH_MAX) {
                widths[j] = width;
            }
        }
    }
    print_row(&head, widths, out);
    for (size_t i = 0; i < n_rows; i++) {
        fill_row(options, i, &row);
        print_row(&row, widths, out);
    }
}
