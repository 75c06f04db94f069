/* query_table.h - turn an answer in JSON into a table, and print it as text or as CSV.
 *
 * Layer: service/client, pure.
 *
 * query_rows.h says what the rows are.  Without a list, the answer itself is the only row.  A
 * column is a member.  The error of an estimate becomes the columns low and high.
 */
#ifndef SERVICE_CLIENT_QUERY_QUERY_TABLE_H
#define SERVICE_CLIENT_QUERY_QUERY_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "storage/base/compiler.h"

struct query_table;

/* A table of @answer, which must outlive the table.  NULL: out of memory, or @answer is no object.
 * Out of memory is also what json_memory.h tells of jansson. */
struct query_table *query_table_new(json_t *answer) MUST_CHECK;
void query_table_free(struct query_table *table); /* NULL is fine */

/* Print columns side by side, with numbers to the right.  Control characters, which a terminal
 * could obey, become '?'.  The figures of the whole window stand under a series. */
void query_table_print(const struct query_table *table, FILE *out);

/* Print CSV: RFC 4180, with LF.  Without rows only the names of the columns are printed.  False:
 * out of memory, and what was printed ends within a row. */
bool query_table_print_csv(const struct query_table *table, FILE *out) MUST_CHECK;

#endif
