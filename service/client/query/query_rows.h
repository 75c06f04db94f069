/* query_rows.h - the rows that an answer has as a table.
 *
 * Layer: service/client, pure.
 *
 *     answer                      rows
 *     /overlap                    a row for each figure
 *     /retention                  a row for each offset of each cohort
 *     /breakdown, with step=      a row for each point of each value's series
 *     others                      the answer's series, pages or other list of objects
 */
#ifndef SERVICE_CLIENT_QUERY_QUERY_ROWS_H
#define SERVICE_CLIENT_QUERY_QUERY_ROWS_H

#include <jansson.h>

#include "storage/base/compiler.h"

/* The rows of @answer, an array: a new one, or the answer's own list.  The caller owns a reference.
 * A row is an object, or a name if the list is one of names.  NULL: the answer has no list, and is
 * itself the only row. */
json_t *query_rows(const json_t *answer) MUST_CHECK;

#endif
