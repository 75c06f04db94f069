/* A log_format of one's own: what may be one, and what its lines read as. */
#include "tests/unit/service/formats/request_check.h"

#define COMBINED                                                                                   \
    "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent "             \
    "\"$http_referer\" \"$http_user_agent\""

static struct log_parser parser;
static struct nginx_template tmpl;

static void begin(const char *format)
{
    const char *fault = nginx_template_compile(format, &tmpl);
    cr_assert_null(fault, "%s: %s", format, fault);
    log_parser_init(&parser, LOG_FORMAT_AUTO, &tmpl);
}

static const struct request want = {
    "192.0.2.1", "/a b", "Mozilla/5.0", "example.org", 971211336, LOG_GET, 200};

Test(nginx, templates)
{
    begin(COMBINED " $host \"$request_time\"");
    expect_request(&parser,
        "192.0.2.1 - Jo Doe [10/Oct/2000:13:55:36 -0700] \"GET /a b?\\x22c HTTP/1.1\" 200 5 \"-\" "
        "\"Mozilla/5.0\" example.org \"0.5\"",
        &want);
    begin("$host|${remote_addr}|$msec|$request_method|$request_uri|$status|$http_user_agent");
    expect_request(
        &parser, "example.org|192.0.2.1|971211336.997|GET|/a b?x|200|Mozilla/5.0", &want);
    begin("<$time_iso8601> $remote_addr \"$uri\" $status \"$http_user_agent\" for=$server_name.");
    expect_request(&parser,
        "<2000-10-10T13:55:36-07:00> 192.0.2.1 \"/a b\" 200 \"Mozilla/5.0\" for=example.org.",
        &want);
}

/* What stands behind the last variable may stand in it, too. */
Test(nginx, the_last_text_ends_the_line)
{
    begin("$remote_addr $msec $status $host $request. $http_user_agent.");
    expect_request(
        &parser, "192.0.2.1 971211336 200 example.org GET /a b HTTP/1. Mozilla/5.0.", &want);
}

Test(nginx, lines_that_are_none)
{
    begin(COMBINED);
    expect_malformed(&parser, "", "not as the log_format");
    expect_malformed(&parser, "192.0.2.1", "not as the log_format");
    expect_malformed(&parser,
        "192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] \"GET /a HTTP/1.1\" 200 5 \"-\" \"UA\" more",
        "not as the log_format");
    expect_malformed(&parser,
        "192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] \"GET /a HTTP/1.1\" 200 5 \"-\" \"UA",
        "not as the log_format");
    expect_malformed(&parser,
        "192.0.2.1 - - [32/Oct/2000:13:55:36 -0700] \"GET /a HTTP/1.1\" 200 5 \"-\" \"UA\"",
        "no valid time");
    expect_malformed(&parser, "192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] \"\" 400 0 \"-\" \"-\"",
        "no valid request");
}

Test(nginx, formats_that_are_none)
{
    static const char *const rows[][2] = {
        {"", "a log_format with $remote_addr"},
        {"combined", "a log_format with $remote_addr"},
        {"$remote_addr $request", "a log_format with $time_local"},
        {"$remote_addr $msec", "a log_format with $request,"},
        {"$remote_addr$msec $request", "a log_format with a text between"},
        {"$remote_addr $msec $request$", "a log_format in which every $"},
        {"$remote_addr $msec ${request", "a log_format in which every $"},
        {"$remote_addr $msec ${} $request", "a log_format in which every $"},
    };
    for (size_t i = 0; i < N(rows); i++) {
        const char *fault = nginx_template_compile(rows[i][0], &tmpl);
        cr_assert_not_null(fault, "%s", rows[i][0]);
        cr_expect(strncmp(fault, rows[i][1], strlen(rows[i][1])) == 0, "%s: %s", rows[i][0], fault);
    }
    char many[1024] = "$remote_addr $msec $request";
    for (int i = 0; i < NGINX_PARTS_MAX; i++) {
        strcat(many, " $a");
    }
    cr_expect_str_eq(nginx_template_compile(many, &tmpl), "a log_format with at most 63 variables");
}
