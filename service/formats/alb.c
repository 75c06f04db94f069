#include "service/formats/alb.h"

#include "service/formats/log_time.h"

enum alb_field {
    ALB_TYPE,
    ALB_TIME,
    ALB_CLIENT = 3,
    ALB_STATUS = 8,
    ALB_REQUEST = 12,
    ALB_UA,
    ALB_FIELDS, /* so many fields are looked at */
};

/* Cut the next field, a word or a quoted text, off @rest.  False: there is no field, or no blank
 * behind the field. */
static bool cut_field(struct slice *rest, struct slice *ret)
{
    bool is_quoted = rest->n > 0 && rest->p[0] == '"';
    return (is_quoted ? log_take_quoted(rest, ret) : log_take_word(rest, ret)) &&
           (slice_take(rest, ' ') || rest->n == 0);
}

static bool is_type(struct slice type)
{
    return slice_equal(type, SLICE("http")) || slice_equal(type, SLICE("https")) ||
           slice_equal(type, SLICE("h2")) || slice_equal(type, SLICE("grpcs")) ||
           slice_equal(type, SLICE("ws")) || slice_equal(type, SLICE("wss"));
}

/* Split line->page, which has the URL "SCHEME://HOST/PATH" so far, into host and page.  An empty
 * path is "/". */
static const char *split_url(struct log_line *line)
{
    const char *end = line->page.p + line->page.n;
    const char *host = memmem(line->page.p, line->page.n, "://", 3);
    if (host == NULL) {
        return "no valid request";
    }
    host += 3;
    const char *path = memchr(host, '/', (size_t)(end - host));
    line->host = (struct slice){host, (size_t)((path != NULL ? path : end) - host)};
    line->page = path != NULL ? (struct slice){path, (size_t)(end - path)} : SLICE("/");
    return NULL;
}

const char *alb_parse(struct slice text, struct log_line *ret)
{
    struct slice fields[ALB_FIELDS];
    for (size_t i = 0; i < ALB_FIELDS; i++) {
        if (!cut_field(&text, &fields[i])) {
            return "not all fields of a load balancer's log";
        }
    }
    struct log_line line = {.ua = fields[ALB_UA]};
    if (!is_type(fields[ALB_TYPE])) {
        return "no type of a request";
    }
    if (!log_time_any(fields[ALB_TIME], &line.at_s)) {
        return "no valid time";
    }
    const char *fault = log_line_take_request(&line, fields[ALB_REQUEST]);
    if (fields[ALB_REQUEST].p[0] == '-') { /* the client sent no request, or half of one */
        fault = "no valid request";
    }
    if (fault == NULL) {
        fault = split_url(&line);
    }
    if (fault == NULL) {
        fault = log_line_take_client(&line, log_without_port(fields[ALB_CLIENT]));
    }
    if (fault == NULL) {
        log_line_take_status(&line, fields[ALB_STATUS]);
        fault = log_line_check(&line);
    }
    if (fault == NULL) {
        *ret = line;
    }
    return fault;
}
