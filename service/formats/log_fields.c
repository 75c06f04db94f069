#include "service/formats/log_fields.h"

#include "service/formats/log_time.h"

const struct log_member *log_table_find(
    const struct log_table *table, const char *parent, struct slice name)
{
    for (size_t i = 0; i < table->n; i++) {
        const struct log_member *member = &table->members[i];
        if (member->parent == parent && slice_equal(name, slice_of(member->name))) {
            return member;
        }
    }
    return NULL;
}

void log_fields_put(struct log_fields *fields, const struct log_table *table,
    const struct log_member *member, struct slice text)
{
    size_t rank = (size_t)(member - table->members) + 1;
    enum log_field field = member->field;
    bool is_nothing = text.n == 0 || slice_equal(text, SLICE("-"));
    if ((is_nothing && field != LOG_FIELD_UA) ||
        (fields->rank[field] != 0 && fields->rank[field] < rank)) {
        return;
    }
    fields->of[field] = text;
    fields->rank[field] = rank;
}

static const char *read_time(const struct log_fields *fields, struct log_line *line)
{
    bool valid =
        fields->rank[LOG_FIELD_TIME] != 0
            ? log_time_any(fields->of[LOG_FIELD_TIME], &line->at_s)
            : log_time_utc(fields->of[LOG_FIELD_DATE], fields->of[LOG_FIELD_CLOCK], &line->at_s);
    return valid ? NULL : "no valid time";
}

static const char *read_request(const struct log_fields *fields, struct log_line *line)
{
    const struct slice *of = fields->of;
    const char *fault = NULL;
    line->method = LOG_GET;
    if (of[LOG_FIELD_REQUEST].n > 0) {
        fault = log_line_take_request(line, of[LOG_FIELD_REQUEST]);
    }
    bool has_target = of[LOG_FIELD_TARGET].n > 0;
    if (has_target || of[LOG_FIELD_REQUEST].n == 0) {
        fault = log_line_take_target(line, of[has_target ? LOG_FIELD_TARGET : LOG_FIELD_PATH]);
    }
    if (fault == NULL && of[LOG_FIELD_METHOD].n > 0) {
        fault = log_line_take_method(line, of[LOG_FIELD_METHOD]);
    }
    return fault;
}

const char *log_fields_read(const struct log_fields *fields, struct log_line *ret)
{
    struct log_line line = {
        .ua = fields->of[LOG_FIELD_UA],
        .host = fields->of[LOG_FIELD_HOST],
        .referrer = fields->of[LOG_FIELD_REFERRER],
        .query = fields->of[LOG_FIELD_QUERY],
    };
    const char *fault = read_time(fields, &line);
    if (fault == NULL) {
        fault = read_request(fields, &line);
    }
    if (fault == NULL) {
        fault = log_line_take_client(&line, log_without_port(fields->of[LOG_FIELD_CLIENT]));
    }
    if (fault == NULL) {
        log_line_take_status(&line, fields->of[LOG_FIELD_STATUS]);
        fault = log_line_check(&line);
    }
    if (fault == NULL) {
        *ret = line;
    }
    return fault;
}
