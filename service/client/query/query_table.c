#include "service/client/query/query_table.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "handlers/text/csv_text.h"
#include "storage/base/buffer.h"

#define COLUMNS_MAX 24
#define NUMBER_TEXT 32

struct query_table {
    const json_t *answer; /* borrowed */
    const json_t *rows;   /* of the answer, or made; NULL: the answer is the only row */
    json_t *made;         /* owned; NULL: none */
    size_t n_columns;
    struct column {
        const char *name;
        const char *parent; /* the member it is in; NULL: the row's own */
        bool number;
        size_t width; /* in code points */
    } columns[COLUMNS_MAX];
};

/* The lists of objects that answers have.  The most telling one stands first. */
static const char *const lists[] = {"series", "pages", "sites", "list", "steps", "days", "rows"};

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

static const json_t *list_of(const json_t *answer)
{
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        const json_t *list = json_object_get(answer, lists[i]);
        bool names = strcmp(lists[i], "pages") == 0 && json_is_string(json_array_get(list, 0));
        if (json_is_array(list) && !names) { /* names of pages repeat the question */
            return list;
        }
    }
    return NULL;
}

/* Make a row of each figure of /overlap. */
static json_t *rows_of_overlap(const json_t *answer)
{
    static const char *const names[] = {"a", "b", "union", "intersection", "new", "jaccard"};
    json_t *rows = json_array();
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const json_t *figure = json_object_get(answer, names[i]);
        if (figure == NULL) { /* new: of two windows only */
            continue;
        }
        json_t *page = json_object_get(figure, "page");
        json_t *set = json_object_get(figure, "pageset");
        json_t *event = json_object_get(figure, "event");
        json_t *uv = json_object_get(figure, "uv");
        json_t *row = json_object();
        page = page != NULL ? page : set != NULL ? set : event;
        json_object_set_new(
            row, "of", json_is_string(page) ? json_incref(page) : json_string(names[i]));
        json_object_set(row, "uv", uv != NULL ? uv : json_object_get(figure, "value"));
        json_object_set(row, "error", json_object_get(figure, "error"));
        json_array_append_new(rows, row);
    }
    return rows;
}

/* Make a row of each offset of a cohort.  Size and first day stand in all of them, and in a row of
 * a cohort that has no offset yet. */
static void add_cohort(json_t *rows, const json_t *cohort)
{
    static const char *const names[] = {"offset", "users", "rate"};
    const json_t *returned = json_object_get(cohort, "returned");
    size_t i = 0;
    do {
        json_t *row = json_object();
        json_object_set(row, "cohort", json_object_get(cohort, "cohort"));
        json_object_set(row, "size", json_object_get(cohort, "size"));
        for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
            json_object_set(row, names[k], json_object_get(json_array_get(returned, i), names[k]));
        }
        json_array_append_new(rows, row);
    } while (++i < json_array_size(returned));
}

/* The rows of /retention: of one cohort, or of several. */
static json_t *rows_of_retention(const json_t *answer)
{
    const json_t *cohorts = json_object_get(answer, "cohorts");
    const json_t *cohort;
    size_t i;
    json_t *rows = json_array();
    if (cohorts == NULL) {
        add_cohort(rows, answer);
    }
    json_array_foreach(cohorts, i, cohort)
    {
        add_cohort(rows, cohort);
    }
    return rows;
}

/* Make a row of each point of the series of /breakdown's rows. */
static json_t *rows_of_breakdown(const json_t *answer)
{
    const json_t *of_answer = json_object_get(answer, "rows");
    const json_t *row;
    size_t i;
    json_t *rows = json_array();
    json_array_foreach(of_answer, i, row)
    {
        const json_t *point;
        size_t k;
        json_array_foreach(json_object_get(row, "series"), k, point)
        {
            json_t *one = json_object();
            json_object_set(one, "value", json_object_get(row, "value"));
            json_object_update(one, (json_t *)(uintptr_t)point);
            json_array_append_new(rows, one);
        }
    }
    return rows;
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

/* Code points of UTF-8. */
static size_t width_of(const char *text)
{
    size_t n = 0;
    for (; *text != '\0'; text++) {
        n += ((unsigned char)*text & 0xc0) != 0x80;
    }
    return n;
}

/* ---- columns ---- */

static void add_column(
    struct query_table *table, const char *parent, const char *name, const json_t *value)
{
    if (table->n_columns < COLUMNS_MAX) {
        table->columns[table->n_columns++] = (struct column){
            .name = name,
            .parent = parent,
            .number = json_is_number(value) || json_is_null(value), /* (no figure) */
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

/* Add the columns of a list without rows.  A series always has rows. */
static void add_known_columns(struct query_table *table)
{
    static const struct {
        const char *list, *beside; /* a member that the answer must have; NULL: none */
        const char *names[6];
    } known[] = {
        {"pages", "total_pages", {"page", "pv", "uv"}},
        {"pages", NULL, {"site", "page", "reads_per_s", "writes_per_s", "error"}},
        {"sites", NULL, {"site"}},
        {"rows", NULL, {"value", "pv", "uv", "low", "high", "at_most"}},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (table->rows == json_object_get(table->answer, known[i].list) &&
            (known[i].beside == NULL || json_object_get(table->answer, known[i].beside) != NULL)) {
            for (size_t k = 0; k < 6 && known[i].names[k] != NULL; k++) {
                add_column(table, NULL, known[i].names[k], NULL);
            }
            return;
        }
    }
}

static void widen(struct query_table *table, const json_t *row)
{
    for (size_t i = 0; i < table->n_columns; i++) {
        char number[NUMBER_TEXT];
        size_t width = width_of(text_of(cell(&table->columns[i], row), number));
        if (width > table->columns[i].width) {
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
    if (json_object_get(answer, "intersection") != NULL) {
        table->made = rows_of_overlap(answer);
    } else if (json_object_get(answer, "returned") != NULL ||
               json_object_get(answer, "cohorts") != NULL) {
        table->made = rows_of_retention(answer);
    } else if (json_object_get(answer, "rows") != NULL && json_object_get(answer, "step") != NULL) {
        table->made = rows_of_breakdown(answer);
    }
    table->rows = table->made != NULL ? table->made : list_of(answer);
    json_t *row = table->rows != NULL ? json_array_get(table->rows, 0) : answer;
    if (json_is_string(row)) {
        add_column(table, NULL, "site", row);
    } else if (json_is_object(row)) {
        add_columns(table, row);
    } else {
        add_known_columns(table);
    }
    widen(table, answer);
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
        json_decref(table->made);
    }
    free(table);
}

/* ---- text ---- */

/* Print another program's text on a terminal.  The controls of ASCII, and those of Latin-1 in
 * UTF-8, become '?'. */
static void put_printable(const char *text, FILE *out)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text, next = (unsigned char)text[1];
        if (c == 0xc2 && next >= 0x80 && next < 0xa0) {
            text++;
            c = '?';
        }
        fputc(c < 0x20 || c == 0x7f ? '?' : c, out);
    }
}

static void put_cell(const struct column *column, const char *text, bool last, FILE *out)
{
    size_t blanks = column->width - width_of(text);
    if (column->number) {
        fprintf(out, "%*s", (int)blanks, "");
    }
    put_printable(text, out);
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

static void put_csv_text(const char *text, FILE *out)
{
    struct buffer cell;
    buffer_init(&cell);
    csv_put_text(&cell, text, strlen(text));
    if (cell.n > 0) {
        (void)fwrite(cell.p, 1, cell.n, out);
    }
    buffer_release(&cell);
}

static void put_csv(const json_t *value, bool last, FILE *out)
{
    char number[NUMBER_TEXT];
    if (json_is_string(value)) {
        put_csv_text(json_string_value(value), out);
    } else {
        fputs(text_of(value, number), out);
    }
    fputc(last ? '\n' : ',', out);
}

static void put_csv_row(const struct query_table *table, const json_t *row, FILE *out)
{
    for (size_t i = 0; i < table->n_columns; i++) {
        put_csv(cell(&table->columns[i], row), i + 1 == table->n_columns, out);
    }
}

void query_table_print_csv(const struct query_table *table, FILE *out)
{
    for (size_t i = 0; i < table->n_columns; i++) {
        put_csv_text(table->columns[i].name, out);
        fputc(i + 1 == table->n_columns ? '\n' : ',', out);
    }
    if (table->rows == NULL) {
        put_csv_row(table, table->answer, out);
    }
    const json_t *row;
    size_t i;
    json_array_foreach(table->rows, i, row)
    {
        put_csv_row(table, row, out);
    }
}
