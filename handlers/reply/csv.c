#include "handlers/reply/csv.h"

#include "handlers/reply/json_memory.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/reply.h"
#include "handlers/text/ascii.h"
#include "handlers/text/csv_text.h"
#include "handlers/text/plain.h"
#include "storage/base/buffer.h"

#define CSV_TYPE "text/csv; charset=utf-8; header=present"

/* ---- what is wanted ---- */

/* The weight of a media range, its q, in thousandths: 1000 where there is no q, 0 if q is
 * malformed. */
static unsigned weight_of(struct slice range)
{
    unsigned weight = 0;
    unsigned unit = 1000;
    const char *p = range.p;
    const char *end = range.p + range.n;
    while ((p = memchr(p, ';', (size_t)(end - p))) != NULL) {
        do {
            p++;
        } while (p < end && (*p == ' ' || *p == '\t'));
        if (end - p >= 2 && (*p == 'q' || *p == 'Q') && p[1] == '=') {
            for (p += 2; p < end && (*p == '.' || ascii_is_digit(*p)); p++) {
                if (*p != '.') {
                    weight += (unsigned)(*p - '0') * unit;
                    unit /= 10;
                }
            }
            return weight > 1000 ? 1000 : weight;
        }
    }
    return 1000;
}

/* The weights that Accept gives, in thousandths; -1: the type is not named. */
struct weights {
    int csv, json, any;
};

static void weigh(struct slice range, struct weights *weights)
{
    range = slice_trim(range, " \t");
    int weight = (int)weight_of(range);
    if (text_is_media_type(range, "text/csv")) {
        weights->csv = weight;
    } else if (text_is_media_type(range, "application/json")) {
        weights->json = weight;
    } else if (text_is_media_type(range, "*/*") || text_is_media_type(range, "application/*")) {
        weights->any = weight > weights->any ? weight : weights->any;
    }
}

bool csv_wanted(struct slice accept)
{
    struct weights weights = {-1, -1, -1};
    while (accept.n > 0) {
        weigh(slice_until(&accept, ','), &weights);
    }
    if (weights.json >= 0) {
        return weights.csv > weights.json;
    }
    return weights.csv > 0 && weights.csv >= weights.any;
}

/* ---- cells ---- */

static void put_cell(struct buffer *out, const json_t *value)
{
    char text[40];
    int n = 0;
    switch (value == NULL ? JSON_NULL : json_typeof(value)) {
    case JSON_STRING:
        csv_put_text(out, json_string_value(value), json_string_length(value));
        return;
    case JSON_INTEGER:
        n = snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(value));
        break;
    case JSON_REAL:
        n = snprintf(text, sizeof(text), "%.*g", REPLY_DIGITS, json_real_value(value));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        n = snprintf(text, sizeof(text), "%s", json_is_true(value) ? "true" : "false");
        break;
    case JSON_NULL:
    case JSON_OBJECT: /* objects and arrays fit into no cell */
    case JSON_ARRAY:
        break;
    }
    buffer_append(out, text, n > 0 ? (size_t)n : 0);
}

/* ---- rows ---- */

struct table {
    const struct csv_shape *shape;
    const json_t *root;
    struct buffer *out;
};

static void end_line(struct buffer *out)
{
    buffer_append(out, "\r\n", 2);
}

static void put_names(const struct table *table)
{
    const char *const *columns = table->shape->columns;
    for (size_t i = 0; i < CSV_COLUMNS_MAX && columns[i] != NULL; i++) {
        buffer_append(table->out, ",", i > 0);
        buffer_append(table->out, columns[i], strlen(columns[i]));
    }
    end_line(table->out);
}

/* Write a line for @row.  @around is the group of rows that @row lies in, or the answer. */
static void put_row(const struct table *table, const json_t *row, const json_t *around)
{
    const char *const *columns = table->shape->columns;
    for (size_t i = 0; i < CSV_COLUMNS_MAX && columns[i] != NULL; i++) {
        const json_t *cell = NULL;
        if (!json_is_object(row) && i == 0) {
            cell = row;
        }
        const json_t *places[] = {row, around, table->root};
        for (size_t k = 0; cell == NULL && k < sizeof(places) / sizeof(places[0]); k++) {
            cell = json_object_get(places[k], columns[i]); /* NULL if the place is no object */
        }
        buffer_append(table->out, ",", i > 0);
        put_cell(table->out, cell);
    }
    end_line(table->out);
}

static void put_rows(const struct table *table, const json_t *rows, const json_t *around)
{
    size_t i;
    json_t *row;
    json_array_foreach((json_t *)(uintptr_t)rows, i, row)
    {
        put_row(table, row, around);
    }
}

static void put_table(const struct table *table)
{
    const char *path = table->shape->rows != NULL ? table->shape->rows : "";
    const char *slash = strchr(path, '/');
    put_names(table);
    const json_t *rows = json_object_getn(table->root, path, strcspn(path, "/"));
    if (!json_is_array(rows)) { /* the answer is the only group, or has no rows */
        rows = slash != NULL ? json_object_get(table->root, slash + 1) : NULL;
        if (json_is_array(rows)) {
            put_rows(table, rows, table->root);
        } else {
            put_row(table, table->root, table->root);
        }
        return;
    }
    if (slash == NULL) {
        put_rows(table, rows, table->root);
        return;
    }
    size_t i;
    json_t *group;
    json_array_foreach((json_t *)(uintptr_t)rows, i, group)
    {
        put_rows(table, json_object_get(group, slash + 1), group);
    }
}

bool csv_asked(const struct http_exchange *exchange)
{
    return csv_wanted(exchange->request.fields[FIELD_ACCEPT]);
}

void csv_dress(struct http_exchange *exchange)
{
    (void)problem_add_header(&exchange->response, "Vary", "Accept");
}

void csv_reply(
    struct http_exchange *exchange, unsigned status, json_t *root, const struct csv_shape *shape)
{
    struct http_response *response = &exchange->response;
    csv_dress(exchange);
    if (root == NULL || json_memory_failed() || !csv_asked(exchange)) {
        reply_json(response, status, root);
        return;
    }
    struct buffer out;
    buffer_init(&out);
    struct table table = {.shape = shape, .root = root, .out = &out};
    put_table(&table);
    if (out.failed) {
        (void)problem_no_memory(response);
    } else {
        reply_text(response, status, CSV_TYPE, out.p, out.n);
    }
    buffer_release(&out);
    json_decref(root);
}
