/* csv.h - the rows of an answer as CSV, for clients that ask for text/csv.
 *
 * Layer: handlers.  Thread-safe: no state.
 *
 * A handler makes the same JSON for all clients and hands it over with a shape.  The shape says
 * which member holds the rows, and which members of a row are columns.
 *
 *     static const struct csv_shape shape = {"series", {"from", "to", "uv"}};
 *     ...
 *     csv_reply(exchange, 200, root, &shape);          instead of reply_json(&.., 200, root)
 *
 * - `rows` is a path of one or two members.  "series" makes a row of each element of `series`.
 *   "cohorts/returned" makes a row of each element of each cohort's `returned`.
 * - A column is a member of the row.  A member that the row lacks is taken from the cohort, or else
 *   from the answer (`site`, say).  Where none of them has the member the cell is empty.
 * - A row that is no object (a user's name) fills the first column.
 * - Where the answer has no rows (no `step` was asked for) the answer itself is the only row.
 *
 * In openapi.yaml the 200 of such an operation has content text/csv beside application/json, and
 * the header Vary (components/headers/Vary).  tests/contract/test_csv.py then finds the operation.
 *
 * Lines end with CRLF (RFC 4180), and a line of names comes first.  text/csv_text.h says what
 * becomes of a text; a number stands as it is.
 */
#ifndef HANDLERS_REPLY_CSV_H
#define HANDLERS_REPLY_CSV_H

#include <jansson.h>

#include "handlers/http/http.h"
#include "storage/base/compiler.h"

#define CSV_COLUMNS_MAX 12

struct csv_shape {
    const char *rows;                     /* the path to the rows; NULL: the answer is one row */
    const char *columns[CSV_COLUMNS_MAX]; /* names; a NULL ends them */
};

/* Does @accept, the value of Accept, want CSV rather than JSON?  The value must name text/csv with
 * a weight above 0.  JSON, if it is named too, must have a lower weight; else no wildcard may have
 * a higher one. */
bool csv_wanted(struct slice accept) MUST_CHECK;

/* Does the client of @exchange want CSV rather than JSON? */
bool csv_asked(const struct http_exchange *exchange) MUST_CHECK;

/* Add `Vary: Accept`, so that no cache gives the answer to a client that wants another form.
 * csv_reply() does this itself. */
void csv_dress(struct http_exchange *exchange);

/* Answer @status with @root, as CSV where the client wants that, else as JSON.  The reference
 * to @root is taken over.  Where memory is out (@root may be NULL) the answer is a 503 problem. */
void csv_reply(
    struct http_exchange *exchange, unsigned status, json_t *root, const struct csv_shape *shape);

#endif
