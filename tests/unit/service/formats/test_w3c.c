/* IIS and CloudFront, in lines as the documents show them, with made-up addresses. */
#include "tests/unit/service/formats/request_check.h"

#define IIS_FIELDS                                                                                 \
    "#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip "          \
    "cs(User-Agent) cs(Referer) sc-status sc-substatus sc-win32-status time-taken"
#define CLOUDFRONT_FIELDS                                                                          \
    "#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status "   \
    "cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id "     \
    "x-host-header"

static struct log_parser parser;

static void begin(enum log_format format, const char *fields)
{
    struct log_line line;
    const char *detail;
    log_parser_init(&parser, format, NULL);
    cr_assert_eq(log_parser_read(&parser, slice_of(fields), &line, &detail), LOG_BLANK);
}

static void expect_blank(const char *text)
{
    struct log_line line;
    const char *detail;
    cr_expect_eq(log_parser_read(&parser, slice_of(text), &line, &detail), LOG_BLANK, "%s", text);
}

#define IIS_(stem, agent)                                                                          \
    "2002-05-24 20:18:01 172.224.24.114 GET " stem " q=1 80 - 206.73.118.24 " agent " - 200 0 0 "  \
    "31"

Test(w3c, iis)
{
    struct request want = {"206.73.118.24", "/Default.htm",
        "Mozilla/4.0 (compatible; MSIE 5.01; Windows 2000 Server)", "", 1022271481, LOG_GET, 200};
    begin(LOG_FORMAT_IIS, IIS_FIELDS);
    expect_request(&parser,
        IIS_("/Default.htm", "Mozilla/4.0+(compatible;+MSIE+5.01;+Windows+2000+Server)"), &want);
    want.ua = "Googlebot/2.1 (+http://www.google.com/bot.html)";
    expect_request(
        &parser, IIS_("/Default.htm", "Googlebot/2.1+(+http://www.google.com/bot.html)"), &want);
    want.ua = "-";
    expect_request(&parser, IIS_("/Default.htm", "-"), &want);
}

Test(w3c, cloudfront)
{
    struct request want = {"192.0.2.100", "/view/a%20b.html", "Mozilla/5.0 (X11; U) \"x\" 100%",
        "www.example.org", 1575493855, LOG_GET, 200};
    begin(LOG_FORMAT_CLOUDFRONT, CLOUDFRONT_FIELDS);
    expect_request(&parser,
        "2019-12-04\t21:10:55\tLAX1\t392\t192.0.2.100\tGET\td111111abcdef8.cloudfront.net\t"
        "/view/a%20b.html\t200\t-\tMozilla/5.0%20(X11;%20U)%20%22x%22%20100%\tid=7\t-\tHit\t"
        "SOX4xwn4XV6Q4rgb7XiVGOHms_BGlTAC4KyHmureZmBNrjGdRLiNIQ==\twww.example.org",
        &want);
    want.host = "d111111abcdef8.cloudfront.net";
    want.status = 0;
    want.ua = "%00x%ff"; /* would be no text: as it is written */
    expect_request(&parser,
        "2019-12-04\t21:10:55\tLAX1\t392\t192.0.2.100\tGET\td111111abcdef8.cloudfront.net\t"
        "/view/a%20b.html\t000\t-\t%00x%ff\tid=7\t-\tHit\tSOX4xwn4XV6Q4rgb7XiVGO==\t-",
        &want);
}

Test(w3c, fields_may_change_and_directives_count_nothing)
{
    begin(LOG_FORMAT_IIS, "#Software: Microsoft Internet Information Services 10.0");
    expect_malformed(&parser, IIS_("/", "-"), "no #Fields: line before");
    expect_blank("#Version: 1.0");
    expect_blank("#Date: 2002-05-24 20:18:01");
    expect_blank(IIS_FIELDS);
    expect_request(&parser, IIS_("/", "a"),
        &(struct request){"206.73.118.24", "/", "a", "", 1022271481, LOG_GET, 200});
    expect_blank("#Fields: date time c-ip cs-method cs-uri-stem sc-status cs-host");
    expect_request(&parser, "2002-05-24 20:18:01 192.0.2.1 POST /x 404 example.org",
        &(struct request){"192.0.2.1", "/x", NULL, "example.org", 1022271481, LOG_POST, 404});
    expect_malformed(&parser, "#Nonsense", "");
}

Test(w3c, malformed)
{
    begin(LOG_FORMAT_IIS, IIS_FIELDS);
    expect_malformed(&parser, IIS_("/", "a") " more", "not as many columns");
    expect_malformed(&parser, "2002-05-24 20:18:01 172.224.24.114 GET /", "not as many columns");
    expect_malformed(&parser, IIS_("-", "a"), "no valid request");
    expect_malformed(&parser, IIS_("/\xc3", "a"), "not UTF-8");
    expect_malformed(&parser, IIS_("/\x01", "a"), "control character");
    expect_malformed(&parser, "", "");
    begin(LOG_FORMAT_IIS, "#Fields: date time c-ip cs-uri-stem");
    expect_malformed(&parser, "0000-05-24 20:18:01 192.0.2.1 /", "no valid time");
    expect_malformed(&parser, "9999-12-31 23:59:59 192.0.2.1 /", "no valid time");
    expect_malformed(&parser, "2002-05-24 24:18:01 192.0.2.1 /", "no valid time");
    expect_malformed(&parser, "2002-05-24 20:18:01 - /", "no host");
    begin(LOG_FORMAT_IIS, "#Fields: c-ip cs-uri-stem");
    expect_malformed(&parser, "192.0.2.1 /", "no valid time");
}

/* More columns than are known cannot be told apart any more. */
Test(w3c, columns_have_a_bound)
{
    char fields[2 * 200 + 64] = "#Fields:", line[2 * 200 + 64] = "";
    for (int i = 0; i < 200; i++) {
        strcat(fields, " x");
        strcat(line, "- ");
    }
    begin(LOG_FORMAT_IIS, fields);
    expect_malformed(&parser, line, "not as many columns");
}
