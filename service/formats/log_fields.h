/* log_fields.h - the named texts of one log line, and the request that the texts tell of.
 *
 * Layer: service/formats, pure.  Thread-safe.
 *
 * Most formats name what they write.  Such a format is a table of log_members.  Several names may
 * stand for one field; then the name that comes first in the table goes before.  An empty text and
 * "-" stand for nothing, but in a user agent.
 */
#ifndef SERVICE_FORMATS_LOG_FIELDS_H
#define SERVICE_FORMATS_LOG_FIELDS_H

#include "service/formats/log_line.h"

enum log_field {
    LOG_FIELD_CLIENT,  /* address, perhaps with a port */
    LOG_FIELD_TIME,    /* a time in any form that log_time_any() reads */
    LOG_FIELD_DATE,    /* in UTC; DATE and CLOCK stand in place of TIME */
    LOG_FIELD_CLOCK,   /* in UTC */
    LOG_FIELD_METHOD,  /* in a log without a method every request is a GET */
    LOG_FIELD_TARGET,  /* the request's target, with or without the query */
    LOG_FIELD_REQUEST, /* "METHOD TARGET HTTP/x", in place of METHOD and TARGET */
    LOG_FIELD_PATH,    /* used in place of TARGET, if REQUEST is missing, too */
    LOG_FIELD_QUERY,   /* the query, if the log keeps it apart from the target */
    LOG_FIELD_STATUS,
    LOG_FIELD_UA,
    LOG_FIELD_HOST,
    LOG_FIELD_REFERRER,
    LOG_FIELD_COUNT,
    LOG_FIELD_OBJECT = LOG_FIELD_COUNT, /* a JSON object, whose members are looked at, too */
};

/* A name in a format.  @parent is the name of the JSON object around; NULL: the line itself. */
struct log_member {
    const char *parent, *name;
    enum log_field field;
};

struct log_table {
    const struct log_member *members;
    size_t n;
};

/* A zeroed struct has no field. */
struct log_fields {
    struct slice of[LOG_FIELD_COUNT];
    size_t rank[LOG_FIELD_COUNT]; /* the place of its name in the table, from 1; 0: no text */
};

/* Find a member.  NULL: the table does not have it.  @parent is compared by its address: it is NULL
 * or a name of the table. */
const struct log_member *log_table_find(
    const struct log_table *table, const char *parent, struct slice name) MUST_CHECK;

/* Keep the text of a member, unless a name that goes before has given one. */
void log_fields_put(struct log_fields *fields, const struct log_table *table,
    const struct log_member *member, struct slice text);

/* The request that the fields tell of.  NULL, or what is wrong (static); then *ret is untouched. */
const char *log_fields_read(const struct log_fields *fields, struct log_line *ret) MUST_CHECK;

#endif
