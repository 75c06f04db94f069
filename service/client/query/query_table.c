#include "service/client/query/query_table.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "handlers/reply/json_memory.h"
#include "handlers/text/csv_text.h"
#include "service/client/query/query_rows.h"
#include "service/log/escape.h"
#include "storage/base/buffer.h"

#define COLUMNS_MAX 24
#define WIDTH_MAX   60 /* a column is at most so wide; a longer text sticks out of its row alone */
#define NUMBER_TEXT 32

struct query_table {
    const json_t *answer; /* borrowed */
    json_t *rows;         /* owned; NULL: the answer is the only row */
    size_t n_columns;
    struct column {
        const char *name;
        const char *parent; /* the row's member that has the column; NULL: the row has it */
        bool number;        /* cells stand to the right */
        size_t width;       /* in code points */
    } columns[COLUMNS_MAX];
};

/* Members of an answer that repeat the question.  In a row of a list they are figures. */
static const char *const echoed[] = {
    "site", "tz", "step", "by", "metric", "action", "match", "return", "new_within"};

static bool is_echoed(const char *name)
{
    for (size_t i = 0; i < sizeof(echoed) / sizeof(echoed[0]); i++) {
        if (strcmp(echoed[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- cells ---- */

static const json_t *cell(const struct column *column, const json_t *row)
{
    if (column->parent != NULL) {
        row = json_object_get(row, column->parent);
    }
    return json_is_object(row) ? json_object_get(row, column->name) : row;
}

/* The text of a cell.  @number has room for a number. */
static const char *text_of(const json_t *value, char number[NUMBER_TEXT])
{
    if (json_is_string(value)) {
        return json_string_value(value);
    }
    if (json_is_integer(value)) {
        (void)snprintf(number, NUMBER_TEXT, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        return number;
    }
    if (json_is_real(value)) {
        (void)snprintf(number, NUMBER_TEXT, "%.6g", json_real_value(value));
        return number;
    }
    return json_is_true(value) ? "true" : json_is_false(value) ? "false" : "";
}

/* The number of code points of @text, which is UTF-8. */
static size_t width_of(const char *text)
{
    size_t n = 0;
    for (; *text != '\0'; text++) {
        n += ((unsigned char)*text & 0xc0) != 0x80;
    }
    return n;
}

/* ---- columns ---- */

static bool has_column(const struct query_table *table, const char *parent, const char *name)
{
    for (size_t i = 0; i < table->n_columns; i++) {
        const struct column *column = &table->columns[i];
        if (strcmp(column->name, name) == 0 && (column->parent == NULL) == (parent == NULL)) {
            return true;
        }
    }
    return false;
}

static void add_column(
    struct query_table *table, const char *parent, const char *name, const json_t *value)
{
    if (table->n_columns < COLUMNS_MAX && !has_column(table, parent, name)) {
        table->columns[table->n_columns++] = (struct column){
            .name = name,
            .parent = parent,
            .number = json_is_number(value) || json_is_null(value), /* null: no figure */
            .width = width_of(name),
        };
    }
}

/* Make columns of @row's plain members, and of the bounds of an estimate. */
static void add_columns(struct query_table *table, json_t *row)
{
    const char *name;
    const json_t *value;
    json_object_foreach(row, name, value)
    {
        if (strcmp(name, "error") == 0 && json_object_get(value, "low") != NULL) {
            add_column(table, name, "low", json_object_get(value, "low"));
            add_column(table, name, "high", json_object_get(value, "high"));
        } else if (!json_is_object(value) && !json_is_array(value) && !json_is_boolean(value) &&
                   (table->rows != NULL || (!json_is_null(value) && !is_echoed(name)))) {
            add_column(table, NULL, name, value);
        }
    }
}

/* Does @answer have the member @name, and is that @value?  A @name or @value of NULL always
 * fits. */
static bool has_member(const json_t *answer, const char *name, const char *value)
{
    const json_t *member = name != NULL ? json_object_get(answer, name) : answer;
    const char *text = json_string_value(member);
    return member != NULL && (value == NULL || (text != NULL && strcmp(text, value) == 0));
}

/* Add the columns of an answer whose list has no rows.  A series always has rows. */
static void add_known_columns(struct query_table *table)
{
    static const struct {
        const char *list, *beside, *word, *value; /* members that the answer must have, too */
        const char *names[6];
    } known[] = {
        {"pages", "total_pages", "by", "visits", {"page", "visits"}},
        {"pages", "total_pages", NULL, NULL, {"page", "pv", "uv"}},
        {"pages", NULL, NULL, NULL, {"site", "page", "reads_per_s", "writes_per_s", "error"}},
        {"sites", "from", NULL, NULL, {"site", "pv", "uv", "visits", "now"}},
        {"sites", NULL, NULL, NULL, {"site"}},
        {"rows", "step", "metric", "uv", {"value", "from", "to", "uv"}},
        {"rows", "step", NULL, NULL, {"value", "from", "to", "pv"}},
        {"rows", NULL, NULL, NULL, {"value", "pv", "uv", "low", "high", "at_most"}},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (json_is_array(json_object_get(table->answer, known[i].list)) &&
            has_member(table->answer, known[i].beside, NULL) &&
            has_member(table->answer, known[i].word, known[i].value)) {
            for (size_t k = 0; k < 6 && known[i].names[k] != NULL; k++) {
                add_column(table, NULL, known[i].names[k], NULL);
            }
            return;
        }
    }
}

/* A column is there if any row has it: only some pages have an `at_most`. */
static void find_columns(struct query_table *table, json_t *answer)
{
    json_t *row;
    size_t i;
    if (table->rows == NULL) {
        add_columns(table, answer);
    } else if (json_array_size(table->rows) == 0) {
        add_known_columns(table);
    }
    json_array_foreach(table->rows, i, row)
    {
        if (json_is_string(row)) {
            add_column(table, NULL, "site", row);
        } else {
            add_columns(table, row);
        }
    }
}

static void widen(struct query_table *table, const json_t *row)
{
    for (size_t i = 0; i < table->n_columns; i++) {
        char number[NUMBER_TEXT];
        size_t width = width_of(text_of(cell(&table->columns[i], row), number));
        if (width > table->columns[i].width && width <= WIDTH_MAX) {
            table->columns[i].width = width;
        }
    }
}

struct query_table *query_table_new(json_t *answer)
{
    struct query_table *table = calloc(1, sizeof(*table));
    if (table == NULL || !json_is_object(answer)) {
        free(table);
        return NULL;
    }
    table->answer = answer;
    table->rows = query_rows(answer);
    if (json_memory_failed()) { /* a row may lack a cell */
        query_table_free(table);
        return NULL;
    }
    find_columns(table, answer);
    widen(table, answer);
    const json_t *row;
    size_t i;
    json_array_foreach(table->rows, i, row)
    {
        widen(table, row);
    }
    return table;
}

void query_table_free(struct query_table *table)
{
    if (table != NULL) {
        json_decref(table->rows);
    }
    free(table);
}

/* ---- text ---- */

static void put_cell(const struct column *column, const char *text, bool last, FILE *out)
{
    size_t width = width_of(text);
    size_t blanks = width < column->width ? column->width - width : 0;
    if (column->number) {
        fprintf(out, "%*s", (int)blanks, "");
    }
    escape_print(text, out);
    if (!column->number && !last) {
        fprintf(out, "%*s", (int)blanks, "");
    }
    fputs(last ? "\n" : "  ", out);
}

static void put_row(const struct query_table *table, const json_t *row, FILE *out)
{
    for (size_t i = 0; i < table->n_columns; i++) {
        char number[NUMBER_TEXT];
        const struct column *column = &table->columns[i];
        put_cell(column, text_of(cell(column, row), number), i + 1 == table->n_columns, out);
    }
}

static void put_rule(const struct query_table *table, FILE *out)
{
    for (size_t i = 0; i < table->n_columns; i++) {
        for (size_t n = 0; n < table->columns[i].width; n++) {
            fputc('-', out);
        }
        fputs(i + 1 == table->n_columns ? "\n" : "  ", out);
    }
}

void query_table_print(const struct query_table *table, FILE *out)
{
    for (size_t i = 0; i < table->n_columns; i++) {
        put_cell(&table->columns[i], table->columns[i].name, i + 1 == table->n_columns, out);
    }
    if (table->n_columns > 0) {
        put_rule(table, out);
    }
    if (table->rows == NULL) {
        put_row(table, table->answer, out);
        return;
    }
    const json_t *row;
    size_t i;
    json_array_foreach(table->rows, i, row)
    {
        put_row(table, row, out);
    }
    /* The distinct visitors of a window are not the sum of those of its parts. */
    if (table->rows == json_object_get(table->answer, "series") && table->n_columns > 0 &&
        cell(&table->columns[table->n_columns - 1], table->answer) != NULL) {
        put_rule(table, out);
        put_row(table, table->answer, out);
    }
}

/* ---- CSV ---- */

/* Print a text as a cell of CSV.  False: out of memory. */
static bool put_csv_text(const char *text, FILE *out)
{
    struct buffer cell;
    buffer_init(&cell);
    csv_put_text(&cell, text, strlen(text));
    if (cell.n > 0 && !cell.failed) {
        (void)fwrite(cell.p, 1, cell.n, out);
    }
    bool has_text = !cell.failed;
    buffer_release(&cell);
    return has_text;
}

static bool put_csv(const json_t *value, bool last, FILE *out)
{
    char number[NUMBER_TEXT];
    if (!json_is_string(value)) {
        fputs(text_of(value, number), out);
    } else if (!put_csv_text(json_string_value(value), out)) {
        return false;
    }
    fputc(last ? '\n' : ',', out);
    return true;
}

static bool put_csv_row(const struct query_table *table, const json_t *row, FILE *out)
{
    for (size_t i = 0; i < table->n_columns; i++) {
        if (!put_csv(cell(&table->columns[i], row), i + 1 == table->n_columns, out)) {
            return false;
        }
    }
    return true;
}

bool query_table_print_csv(const struct query_table *table, FILE *out)
{
    for (size_t i = 0; i < table->n_columns; i++) {
        if (!put_csv_text(table->columns[i].name, out)) {
            return false;
        }
        fputc(i + 1 == table->n_columns ? '\n' : ',', out);
    }
    if (table->rows == NULL) {
        return put_csv_row(table, table->answer, out);
    }
    const json_t *row;
    size_t i;
    json_array_foreach(table->rows, i, row)
    {
        if (!put_csv_row(table, row, out)) {
            return false;
        }
    }
    return true;
}
