#include "handlers/grafana/breakdown.h"

#include "handlers/reply/json_body.h"
#include "handlers/reply/reply.h"
#include "handlers/text/plain.h"

#define ROWS      10 /* rows where no limit is given */
#define ROWS_TEXT 4  /* digits of the largest limit */

/* Read a limit: a number, or its digits, as query editors send them.  False: it is neither, or out
 * of range. */
static bool read_limit(const json_t *value, size_t *ret)
{
    struct slice text = json_text_of(value);
    json_int_t whole = json_integer_value(value);
    uint64_t n = whole > 0 ? (uint64_t)whole : 0;
    if (value == NULL || json_is_null(value) || (json_is_string(value) && text.n == 0)) {
        n = ROWS;
    }
    if (text.n > 0 && (text.n > ROWS_TEXT || !text_number(text, PAGES_LIMIT_MAX, &n))) {
        return false;
    }
    *ret = n;
    return n >= 1 && n <= PAGES_LIMIT_MAX;
}

const char *grafana_breakdown_read(const struct app *app, struct slice site, struct slice by,
    const json_t *limit, struct grafana_breakdown *ret)
{
    ret->by = by.n > 0 ? by : SLICE("source");
    if (!breakdown_by_read(app, site, ret->by, &ret->class)) {
        return "by: " BREAKDOWN_BY_FAULT;
    }
    return read_limit(limit, &ret->limit) ? NULL : "limit: must be a whole number from 1 to 1000";
}

struct pages_job grafana_breakdown_job(
    const struct grafana_breakdown *breakdown, const struct window_question *asked)
{
    struct slice class = {breakdown->class.text, breakdown->class.n};
    return (struct pages_job){.asked = *asked,
        .class = class,
        .prefix = class,
        .without_uv = !breakdown->class.with_uv,
        .limit = breakdown->limit};
}

static json_t *column(struct slice name, const char *type)
{
    return json_pack("{s:o,s:s}", "text", text_json(name), "type", type);
}

json_t *grafana_breakdown_columns(const struct grafana_breakdown *breakdown)
{
    json_t *columns = json_array();
    json_array_append_new(columns, column(breakdown->by, "string"));
    json_array_append_new(columns, column(SLICE("pv"), "number"));
    json_array_append_new(columns, column(SLICE("at_most"), "number"));
    if (breakdown->class.with_uv) {
        json_array_append_new(columns, column(SLICE("uv"), "number"));
    }
    return columns;
}

static void add_row(json_t *rows, const struct grafana_breakdown *breakdown, struct slice value,
    uint64_t pv, uint64_t at_most, json_t *uv)
{
    json_t *row = json_pack("[o,I,I]", text_json(value), (json_int_t)pv, (json_int_t)at_most);
    if (breakdown->class.with_uv) {
        json_array_append(row, uv);
    }
    json_decref(uv);
    json_array_append_new(rows, row);
}

json_t *grafana_breakdown_rows(
    const struct grafana_breakdown *breakdown, const struct pages_job *job)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < job->n_rows; i++) {
        const struct page_row *row = &job->rows[i];
        struct slice value = {row->page.p + breakdown->class.n, row->page.n - breakdown->class.n};
        add_row(rows, breakdown, value, row->pv, row->at_most, json_integer((json_int_t)row->uv));
    }
    if (job->other_pv > 0) {
        add_row(rows, breakdown, SLICE("(other)"), job->other_pv, job->other_pv, json_null());
    }
    return rows;
}
