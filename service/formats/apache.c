#include "service/formats/apache.h"

#include "handlers/text/ascii.h"
#include "service/formats/log_time.h"

/* The rest of the line.  A take_ function moves the cursor only when it returns true. */
struct cursor {
    const char *p, *end;
};

static bool take_byte(struct cursor *cur, char c)
{
    if (cur->p == cur->end || *cur->p != c) {
        return false;
    }
    cur->p++;
    return true;
}

/* Take bytes up to a blank, at least one.  The blank is left. */
static bool take_word(struct cursor *cur, struct slice *ret)
{
    const char *p = cur->p;
    while (p < cur->end && *p != ' ') {
        p++;
    }
    if (p == cur->p) {
        return false;
    }
    *ret = (struct slice){cur->p, (size_t)(p - cur->p)};
    cur->p = p;
    return true;
}

/* Take a quoted text; *ret has no quotes. */
static bool take_quoted(struct cursor *cur, struct slice *ret)
{
    const char *p = cur->p;
    if (p == cur->end || *p != '"') {
        return false;
    }
    for (p++; p < cur->end && *p != '"'; p++) {
        if (*p == '\\' && ++p == cur->end) {
            return false;
        }
    }
    if (p >= cur->end) {
        return false;
    }
    *ret = (struct slice){cur->p + 1, (size_t)(p - cur->p - 1)};
    cur->p = p + 1;
    return true;
}

/* Take the next "[TIME] " behind a blank, and what stands before. */
static bool take_time(struct cursor *cur, int64_t *ret_s)
{
    for (const char *p = cur->p + 1; p < cur->end; p++) {
        p = memchr(p, '[', (size_t)(cur->end - p));
        if (p == NULL || (size_t)(cur->end - p) < LOG_TIME_APACHE_BYTES + 3) {
            return false;
        }
        if (p[-1] == ' ' && p[LOG_TIME_APACHE_BYTES + 1] == ']' &&
            p[LOG_TIME_APACHE_BYTES + 2] == ' ' && log_time_apache(p + 1, ret_s)) {
            cur->p = p + LOG_TIME_APACHE_BYTES + 3;
            return true;
        }
    }
    return false;
}

/* Take a number, or "-" for none. */
static bool take_number(struct cursor *cur, struct slice *ret)
{
    struct slice word;
    struct cursor at = *cur;
    if (!take_word(&at, &word)) {
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
    *cur = at;
    return true;
}

/* "REQUEST" STATUS BYTES ["REFERRER" "USER AGENT"].  NULL, or what is wrong.  *ret_clean: the last
 * field ends at a blank or at the line's end. */
static const char *split_rest(
    struct cursor cur, enum apache_format format, struct log_line *line, bool *ret_clean)
{
    struct slice request, status, size;
    if (!take_quoted(&cur, &request) || !take_byte(&cur, ' ')) {
        return "no quoted request";
    }
    const char *fault = log_line_take_request(line, request);
    if (fault != NULL) {
        return fault;
    }
    if (!take_number(&cur, &status) || !take_byte(&cur, ' ') || !take_number(&cur, &size)) {
        return "no status and size";
    }
    log_line_take_status(line, status);
    if (format == APACHE_COMMON) {
        while (take_byte(&cur, ' ')) {
            continue;
        }
        *ret_clean = true;
        return cur.p == cur.end ? NULL : "more fields than the common format has";
    }
    if (!take_byte(&cur, ' ') || !take_quoted(&cur, &line->referrer)) {
        return "no quoted referrer";
    }
    if (!take_byte(&cur, ' ') || !take_quoted(&cur, &line->ua)) {
        return "no quoted user agent";
    }
    *ret_clean = cur.p == cur.end || *cur.p == ' ';
    return NULL;
}

/* Take "HOST IDENT USER", with the virtual host before.  The last blank and what follows is left:
 * a user's name may hold blanks. */
static const char *split_client(
    struct cursor *cur, enum apache_format format, struct log_line *line)
{
    struct slice client, ident, user;
    if (format == APACHE_VHOST && (!take_word(cur, &line->host) || !take_byte(cur, ' '))) {
        return "no virtual host";
    }
    const char *host = line->host.p;
    if (line->host.n > 0 && host[0] == '-' && (line->host.n == 1 || host[1] == ':')) {
        line->host = (struct slice){0}; /* the request named none; a port may follow */
    }
    if (!take_word(cur, &client)) {
        return cur->p == cur->end ? "empty line" : "no host";
    }
    if (!take_byte(cur, ' ') || !take_word(cur, &ident) || !take_byte(cur, ' ') ||
        !take_word(cur, &user)) {
        return "no valid time";
    }
    return log_line_take_client(line, client);
}

/* Cut the line into its fields.  NULL, or what is wrong.
 *
 * A user's name may hold blanks and brackets.  So the time is the first bracket behind which the
 * rest of the line reads as it should.  Sometimes two records ran into each other.  Then the first
 * is cut off, and its user agent does not end cleanly.  The second is taken if it is whole, else
 * the first. */
static const char *split(struct slice text, enum apache_format format, struct log_line *line)
{
    struct cursor cur = {text.p, text.p + text.n};
    const char *detail = split_client(&cur, format, line);
    if (detail != NULL) {
        return detail;
    }
    struct log_line unclean = {0};
    while (take_time(&cur, &line->at_s)) {
        bool clean = false;
        const char *fault = split_rest(cur, format, line, &clean);
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
    struct cursor cur = {text.p, text.p + text.n};
    struct slice first, second;
    struct log_line as_host = {0}, as_client = {0};
    if (!take_word(&cur, &first) || !take_byte(&cur, ' ') || !take_word(&cur, &second)) {
        return false;
    }
    if (log_line_take_client(&as_host, first) != NULL ||
        log_line_take_client(&as_client, second) != NULL || as_host.client_is_ip) {
        return false;
    }
    return as_client.client_is_ip || log_without_port(first).n < first.n;
}
