#include "service/formats/apache.h"

#include "handlers/text/ascii.h"
#include "service/formats/log_time.h"

/* A take_ function cuts off the front of @rest, the rest of the line, only when it returns true. */

/* Take the next "[TIME] " behind a blank, and what stands before. */
static bool take_time(struct slice *rest, int64_t *ret_s)
{
    struct slice behind = *rest, before;
    while (slice_take_until(&behind, '[', &before) && behind.n >= LOG_TIME_APACHE_BYTES + 2) {
        if (before.n > 0 && before.p[before.n - 1] == ' ' &&
            behind.p[LOG_TIME_APACHE_BYTES] == ']' && behind.p[LOG_TIME_APACHE_BYTES + 1] == ' ' &&
            log_time_apache(behind.p, ret_s)) {
            size_t n = LOG_TIME_APACHE_BYTES + 2;
            *rest = (struct slice){behind.p + n, behind.n - n};
            return true;
        }
    }
    return false;
}

/* Take a number, or "-" for none. */
static bool take_number(struct slice *rest, struct slice *ret)
{
    struct slice word, at = *rest;
    if (!log_take_word(&at, &word)) {
        return false;
    }
    if (!slice_equal(word, SLICE("-"))) {
        for (size_t i = 0; i < word.n; i++) {
            if (!ascii_is_digit(word.p[i])) {
                return false;
            }
        }
    }
    *ret = word;
    *rest = at;
    return true;
}

/* Take "REQUEST" STATUS BYTES ["REFERRER" "USER AGENT"].  NULL, or what is wrong.  *ret_clean: the
 * last field ends at a blank or at the line's end. */
static const char *split_rest(
    struct slice rest, enum apache_format format, struct log_line *line, bool *ret_clean)
{
    struct slice request, status, size;
    if (!log_take_quoted(&rest, &request) || !slice_take(&rest, ' ')) {
        return "no quoted request";
    }
    const char *fault = log_line_take_request(line, request);
    if (fault != NULL) {
        return fault;
    }
    if (!take_number(&rest, &status) || !slice_take(&rest, ' ') || !take_number(&rest, &size)) {
        return "no status and size";
    }
    log_line_take_status(line, status);
    if (format == APACHE_COMMON) {
        while (slice_take(&rest, ' ')) {
            continue;
        }
        *ret_clean = true;
        return rest.n == 0 ? NULL : "more fields than the common format has";
    }
    if (!slice_take(&rest, ' ') || !log_take_quoted(&rest, &line->referrer)) {
        return "no quoted referrer";
    }
    if (!slice_take(&rest, ' ') || !log_take_quoted(&rest, &line->ua)) {
        return "no quoted user agent";
    }
    *ret_clean = rest.n == 0 || rest.p[0] == ' ';
    return NULL;
}

/* Take "HOST IDENT USER", and the virtual host before, if the format has one.  Only the first word
 * of USER is taken, because a user's name may hold blanks: take_time() skips the others. */
static const char *split_client(
    struct slice *rest, enum apache_format format, struct log_line *line)
{
    struct slice client, ident, user;
    if (format == APACHE_VHOST && (!log_take_word(rest, &line->host) || !slice_take(rest, ' '))) {
        return "no virtual host";
    }
    const char *host = line->host.p;
    if (line->host.n > 0 && host[0] == '-' && (line->host.n == 1 || host[1] == ':')) {
        line->host = (struct slice){0}; /* the request named no host; a port may follow */
    }
    if (!log_take_word(rest, &client)) {
        return rest->n == 0 ? "empty line" : "no host";
    }
    if (!slice_take(rest, ' ') || !log_take_word(rest, &ident) || !slice_take(rest, ' ') ||
        !log_take_word(rest, &user)) {
        return "no valid time";
    }
    return log_line_take_client(line, client);
}

/* Cut the line into its fields.  NULL, or what is wrong.
 *
 * A user's name may hold blanks and brackets.  So the time is the first bracket behind which the
 * rest of the line reads as it should.  Sometimes two records ran into each other.  Then the first
 * record is cut off, and its user agent does not end cleanly.  The second record is taken if it is
 * whole, else the first. */
static const char *split(struct slice text, enum apache_format format, struct log_line *line)
{
    const char *detail = split_client(&text, format, line);
    if (detail != NULL) {
        return detail;
    }
    struct log_line unclean = {0};
    while (take_time(&text, &line->at_s)) {
        bool clean = false;
        const char *fault = split_rest(text, format, line, &clean);
        if (fault == NULL && clean) {
            return NULL;
        }
        if (fault == NULL && unclean.client.n == 0) {
            unclean = *line;
        }
        detail = detail == NULL ? fault : detail;
    }
    if (unclean.client.n > 0) {
        *line = unclean;
        return NULL;
    }
    return detail == NULL ? "no valid time" : detail;
}

const char *apache_parse(struct slice text, enum apache_format format, struct log_line *ret)
{
    struct log_line line = {0};
    const char *detail = split(text, format, &line);
    if (detail == NULL) {
        detail = log_line_check(&line);
    }
    if (detail == NULL) {
        *ret = line;
    }
    return detail;
}

bool apache_begins_with_vhost(struct slice text)
{
    struct slice first, second;
    struct log_line as_host = {0}, as_client = {0};
    if (!log_take_word(&text, &first) || !slice_take(&text, ' ') ||
        !log_take_word(&text, &second)) {
        return false;
    }
    if (log_line_take_client(&as_host, first) != NULL ||
        log_line_take_client(&as_client, second) != NULL || as_host.client_is_ip) {
        return false;
    }
    return as_client.client_is_ip || log_without_port(first).n < first.n;
}
