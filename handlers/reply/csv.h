/* csv.h - rows of an answer as CSV, for who asks for text/csv.
 *
 * Layer: handlers.  Thread-safe: no state.
 * Source: RFC 4180 (CRLF at line ends, a line of names first, quotes around what has a comma, a
 * quote or a line end, quotes in it doubled).
 *
 * A handler makes its JSON as ever and hands it over with a shape: which member holds the rows, and
 * which of their members are columns.
 *
 *     static const struct csv_shape shape = {"series", {"from", "to", "uv"}};
 *     ...
 *     csv_reply(exchange, 200, root, &shape);          instead of reply_json(&.., 200, root)
 *
 * - `rows` is a path of one or two members: "series"; "cohorts/returned" makes a row of each
 * element of each `returned`, whose columns are looked for there first, then in its cohort.
 * - A column is a member of the row; what a row lacks, it has from the answer itself (`site`, say),
 *   and else an empty cell.
 * - Rows that are no objects (a list of users) fill the first column.
 * - Where the answer has no such member (no `step` was asked for), it is itself the only row.
 *
 * In openapi.yaml the 200 of such an operation has content text/csv beside application/json, and
 * the header Vary (components/headers/Vary); tests/contract/test_csv.py then finds it by itself.
 *
 * Texts are written by text/csv_text.h, numbers as numbers.
 */
#ifndef HANDLERS_REPLY_CSV_H
#define HANDLERS_REPLY_CSV_H

#include <jansson.h>

#include "handlers/http/http.h"
#include "storage/base/buffer.h"

#define CSV_COLUMNS_MAX 12

struct csv_shape {
    const char *rows;
    const char *columns[CSV_COLUMNS_MAX]; /* NULL ends */
};

/* Does @accept, the value of Accept, want CSV rather than JSON?  It has to name text/csv, with a
 * weight above JSON's, and not below that of a wildcard. */
bool csv_wanted(struct slice accept);

/* Answer @status with @root, whose reference is taken over, as JSON or, if that is wanted, as CSV.
 * NULL, or no memory: a 503 problem. */
void csv_reply(
    struct http_exchange *exchange, unsigned status, json_t *root, const struct csv_shape *shape);

#endif
