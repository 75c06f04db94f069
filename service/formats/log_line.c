#include "service/formats/log_line.h"

#include <string.h>

#include "handlers/text/ascii.h"
#include "handlers/text/check.h"
#include "handlers/text/plain.h"
#include "handlers/text/utf8.h"

const char *log_line_take_method(struct log_line *line, struct slice name)
{
    if (!text_is_token(name)) {
        return "no valid request";
    }
    line->method = slice_equal(name, SLICE("GET"))    ? LOG_GET
                   : slice_equal(name, SLICE("HEAD")) ? LOG_HEAD
                   : slice_equal(name, SLICE("POST")) ? LOG_POST
                                                      : LOG_OTHER;
    return NULL;
}

const char *log_line_take_target(struct log_line *line, struct slice target)
{
    line->target = target;
    line->page = slice_until(&target, '?');
    return line->page.n > 0 ? NULL : "no valid request";
}

/* Is @text "HTTP/1.1", "HTTP/2"..? */
static bool is_protocol(struct slice text)
{
    if (text.n < sizeof("HTTP/1") - 1 || !slice_begins(text, SLICE("HTTP/"))) {
        return false;
    }
    for (size_t i = 5; i < text.n; i++) {
        if (!ascii_is_digit(text.p[i]) && text.p[i] != '.') {
            return false;
        }
    }
    return true;
}

/* The target ends where the protocol begins, not at the first blank. */
const char *log_line_take_request(struct log_line *line, struct slice request)
{
    const char *end = request.p + request.n;
    const char *blank = request.n > 0 ? memchr(request.p, ' ', request.n) : NULL;
    if (blank == NULL) {
        return "no valid request";
    }
    struct slice method = {request.p, (size_t)(blank - request.p)};
    const char *fault = log_line_take_method(line, method);
    if (fault != NULL) {
        return fault;
    }
    const char *last = memrchr(blank, ' ', (size_t)(end - blank));
    if (is_protocol((struct slice){last + 1, (size_t)(end - last - 1)})) {
        end = last;
    }
    const char *target = blank;
    while (target < end && *target == ' ') {
        target++;
    }
    return log_line_take_target(line, (struct slice){target, (size_t)(end - target)});
}

const char *log_line_take_client(struct log_line *line, struct slice client)
{
    if (client.n == 0) {
        return "no host";
    }
    struct event_address ignored;
    line->client = client;
    line->client_is_ip = event_parse_address(client, &ignored) == NULL;
    return NULL;
}

void log_line_take_status(struct log_line *line, struct slice status)
{
    uint64_t number = 0;
    line->status = status.n == 3 && text_number(status, 999, &number) ? (unsigned)number : 0;
}

const char *log_line_check(const struct log_line *line)
{
    if (!utf8_valid(line->page) || !utf8_valid(line->ua) || !utf8_valid(line->client)) {
        return "not UTF-8";
    }
    if (text_has_control(line->page)) {
        return "control character in the target";
    }
    if (line->ua.n > 0 && memchr(line->ua.p, '\0', line->ua.n) != NULL) {
        return "NUL in the user agent";
    }
    return NULL;
}

struct slice log_without_port(struct slice address)
{
    if (address.n == 0) {
        return address;
    }
    const char *end = address.p + address.n;
    const char *port = end;
    while (port > address.p && ascii_is_digit(port[-1])) {
        port--;
    }
    bool has_port = port < end && port > address.p && port[-1] == ':';
    struct slice host = {address.p, has_port ? (size_t)(port - 1 - address.p) : address.n};
    if (host.n >= 2 && host.p[0] == '[' && host.p[host.n - 1] == ']') {
        return (struct slice){host.p + 1, host.n - 2};
    }
    /* A second colon without brackets: the digits are the end of an IPv6 address. */
    return has_port && memchr(host.p, ':', host.n) != NULL ? address : host;
}

bool log_take_word(struct slice *rest, struct slice *ret)
{
    size_t n = 0;
    while (n < rest->n && rest->p[n] != ' ') {
        n++;
    }
    if (n == 0) {
        return false;
    }
    *ret = (struct slice){rest->p, n};
    *rest = (struct slice){rest->p + n, rest->n - n};
    return true;
}

bool log_take_quoted(struct slice *rest, struct slice *ret)
{
    size_t n = 1;
    if (rest->n == 0 || rest->p[0] != '"') {
        return false;
    }
    for (; n < rest->n && rest->p[n] != '"'; n++) {
        if (rest->p[n] == '\\' && ++n == rest->n) {
            return false;
        }
    }
    if (n >= rest->n) {
        return false;
    }
    *ret = (struct slice){rest->p + 1, n - 1};
    *rest = (struct slice){rest->p + n + 1, rest->n - n - 1};
    return true;
}
