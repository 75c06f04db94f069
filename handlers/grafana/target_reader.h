/* target_reader.h - one target of a panel while it is read.
 *
 * Layer: handlers, private to query.c (a query and its targets) and filters.c (site and pages).  A
 * reader belongs to one thread.
 */
#ifndef HANDLERS_GRAFANA_TARGET_READER_H
#define HANDLERS_GRAFANA_TARGET_READER_H

#include <jansson.h>
#include <stdbool.h>

struct grafana_query;
struct grafana_target;
struct http_exchange;

/* What is read, and where it is written to. */
struct target_reader {
    struct http_exchange *exchange;
    const json_t *root;            /* the body */
    struct grafana_query *query;   /* what was read of the body */
    struct grafana_target *target; /* the target at hand; NULL: none so far */
};

/* Read the target's site, pages and page set: those of @payload, narrowed by the dashboard's
 * filters.  False: the response says what is wrong. */
bool grafana_filters_read(const struct target_reader *r, const json_t *payload);

/* Read the name in @value, without the escapes of query editors, into @ret, which stays as it is if
 * there is none.  The name lives as long as the target.  False: there are several names, or memory
 * is out, and the response says so.  @what is the member's name. */
bool grafana_read_name(
    const struct target_reader *r, const char *what, const json_t *value, struct slice *ret);

#define NO_NAMES "must be a name, or a list of names"

/* Answer 400, and say which of the panel's queries is at fault.  Always false. */
bool grafana_refuse(const struct target_reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
