/* query_table.h - an answer in JSON as rows, and rows as text.
 *
 * Layer: service/client, pure.
 *
 * The rows are the answer's series, pages or other list of objects; without one, the answer itself
 * is the row.  A column is a member; the error of an estimate becomes the columns low and high.
 */
#ifndef SERVICE_CLIENT_QUERY_TABLE_H
#define SERVICE_CLIENT_QUERY_TABLE_H

#include <jansson.h>
#include <stdio.h>

struct query_table;

/* NULL: no memory, or no object. */
struct query_table *query_table_new(json_t *answer);
void query_table_free(struct query_table *table); /* NULL is fine */

/* Columns side by side, numbers to the right.  Control characters, which could be for the terminal,
 * become '?'.  Under a series, the figures of the whole window. */
void query_table_print(const struct query_table *table, FILE *out);

/* RFC 4180, with LF.  Without rows, the names of the columns. */
void query_table_print_csv(const struct query_table *table, FILE *out);

#endif
