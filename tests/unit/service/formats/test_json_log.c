/* Caddy, Traefik, Cloudflare and nginx with a JSON object a line: lines as the documents show them,
 * with made-up addresses. */
#include "tests/unit/service/formats/request_check.h"

static struct log_parser parser;

static void begin(enum log_format format)
{
    log_parser_init(&parser, format, NULL);
}

#define CADDY_(ts, headers)                                                                        \
    "{\"level\":\"info\",\"ts\":" ts ",\"logger\":\"http.log.access\",\"msg\":\"handled "          \
    "request\",\"request\":{\"remote_ip\":\"192.0.2.1\",\"remote_port\":\"41342\","                \
    "\"client_ip\":\"203.0.113.9\",\"proto\":\"HTTP/2.0\",\"method\":\"GET\",\"host\":"            \
    "\"Example.org:8443\",\"uri\":\"/caf\\u00e9?q=1\",\"headers\":{" headers                       \
    "\"Accept-Encoding\":[\"gzip, deflate, br\"]},\"tls\":{\"resumed\":false,\"version\":772,"     \
    "\"proto\":\"h2\"}},\"bytes_read\":0,\"user_id\":\"\",\"duration\":0.000929675,\"size\":10900" \
    ",\"status\":200,\"resp_headers\":{\"Server\":[\"Caddy\"],\"User-Agent\":[\"not this\"]}}"

Test(json_log, caddy)
{
    struct request want = {
        "203.0.113.9", "/caf\xc3\xa9", "curl/7.82.0", "Example.org:8443", 1646861401, LOG_GET, 200};
    begin(LOG_FORMAT_CADDY);
    expect_request(
        &parser, CADDY_("1646861401.5241024", "\"User-Agent\":[\"curl/7.82.0\",\"b\"],"), &want);
    expect_request(&parser, CADDY_("1646861401524", "\"User-Agent\":[\"curl/7.82.0\"],"), &want);
    expect_request(
        &parser, CADDY_("\"2022-03-09T21:30:01Z\"", "\"User-Agent\":\"curl/7.82.0\","), &want);
    expect_request(&parser,
        CADDY_("1646861401.5", "\"User-Agent\":[\"curl/7.82.0\",\"\xc3\",{\"a\":\"\xc3\"}],"),
        &want);
    want.ua = NULL;
    expect_request(&parser, CADDY_("1646861401.5", ""), &want);
    expect_request(&parser, CADDY_("1646861401.5", "\"User-Agent\":[],\"Referer\":[7],"), &want);
}

Test(json_log, caddy_before_2_5)
{
    begin(LOG_FORMAT_CADDY);
    expect_request(&parser,
        "{\"ts\":1585597114.7687502,\"msg\":\"handled request\",\"request\":{\"method\":\"POST\","
        "\"uri\":\"/\",\"proto\":\"HTTP/2.0\",\"remote_addr\":\"[2001:db8::1]:50876\",\"host\":"
        "\"example.com\",\"headers\":{\"User-Agent\":[\"curl/7.64.1\"]}},\"status\":500}",
        &(struct request){
            "2001:db8::1", "/", "curl/7.64.1", "example.com", 1585597114, LOG_POST, 500});
}

Test(json_log, caddy_malformed)
{
    begin(LOG_FORMAT_CADDY);
    expect_malformed(&parser,
        "{\"level\":\"info\",\"ts\":1646861401.5,\"msg\":\"serving initial configuration\"}",
        "no valid request");
    expect_malformed(&parser, "{\"ts\":1646861401.5,\"request\":\"GET /\"}", "no valid request");
    expect_malformed(
        &parser, "{\"ts\":1646861401,\"request\":{\"method\":\"GET\",\"uri\":\"/\"}}", "no host");
    expect_malformed(&parser,
        "{\"ts\":1646861401,\"request\":{\"client_ip\":\"192.0.2.1\",\"uri\":\"?q\"}}",
        "no valid request");
    expect_malformed(&parser, CADDY_("99999999999", ""), "no valid time");
    expect_malformed(&parser, CADDY_("\"9999-12-31T23:59:59Z\"", ""), "no valid time");
    expect_malformed(&parser, CADDY_("\"0000-01-01T00:00:00Z\"", ""), "no valid time");
    expect_malformed(&parser, CADDY_("-5", ""), "no valid time");
    expect_malformed(&parser, CADDY_("null", ""), "no valid time");
    expect_malformed(&parser, CADDY_("1e9", ""), "no valid time");
    expect_malformed(&parser, CADDY_("1646861401", "\"User-Agent\":[\"\\u0000\"],"), "");
    expect_malformed(&parser, CADDY_("1646861401", "\"User-Agent\":[\"\xc3\"],"), "");
    expect_malformed(&parser, CADDY_("1646861401", "\"User-Agent\":[\"\xc3\",\"b\"],"), "");
    expect_malformed(&parser, CADDY_("1646861401", "") "x", "nothing may follow");
    expect_malformed(&parser, "[]", "not a JSON object");
    expect_malformed(&parser, "{", "");
    expect_malformed(&parser, "{\"ts\":", "");
    expect_malformed(&parser, "GET / HTTP/1.1", "not a JSON object");
}

/* What is not looked at may hold anything. */
Test(json_log, other_members_do_not_matter)
{
    struct request want = {
        "203.0.113.9", "/caf\xc3\xa9", NULL, "Example.org:8443", 1646861401, LOG_GET, 200};
    begin(LOG_FORMAT_CADDY);
    expect_request(&parser, CADDY_("1646861401", "\"Referer\":[\"\xff\",{\"a\":[]}],"), &want);
    expect_request(&parser, CADDY_("1646861401", "\"\xff\":\"\\ud800\",\"x\":\"\\u0000\","), &want);
}

#define TRAEFIK_                                                                                   \
    "{\"ClientAddr\":\"192.0.2.1:51034\",\"ClientHost\":\"192.0.2.1\",\"ClientPort\":\"51034\","   \
    "\"ClientUsername\":\"-\",\"DownstreamContentSize\":12,\"DownstreamStatus\":301,"              \
    "\"Duration\":4000000,\"OriginStatus\":200,\"RequestAddr\":\"www.example.org:8080\","          \
    "\"RequestContentSize\":0,\"RequestCount\":9,\"RequestHost\":\"www.example.org\","             \
    "\"RequestMethod\":\"HEAD\",\"RequestPath\":\"/a?b=c\",\"RequestPort\":\"8080\","              \
    "\"RequestProtocol\":\"HTTP/1.1\",\"RequestScheme\":\"https\",\"RetryAttempts\":0,"            \
    "\"RouterName\":\"blog@docker\",\"StartLocal\":\"2021-06-06T09:03:59.184842Z\","               \
    "\"StartUTC\":\"2021-06-06T08:03:59.184842Z\",\"level\":\"info\",\"msg\":\"\","

Test(json_log, traefik)
{
    struct request want = {"192.0.2.1", "/a", NULL, "www.example.org", 1622966639, LOG_HEAD, 301};
    begin(LOG_FORMAT_TRAEFIK);
    expect_request(&parser, TRAEFIK_ "\"time\":\"2021-06-06T08:04:00Z\"}", &want);
    want.ua = "Mozilla/5.0";
    expect_request(&parser, TRAEFIK_ "\"request_User-Agent\":\"Mozilla/5.0\"}", &want);
    expect_malformed(
        &parser, "{\"level\":\"info\",\"time\":\"2021-06-06T08:04:00Z\"}", "no valid request");
}

#define CLOUDFLARE_(start)                                                                         \
    "{\"ClientIP\":\"2001:db8::42\",\"ClientRequestHost\":\"shop.example.com\","                   \
    "\"ClientRequestMethod\":\"GET\",\"ClientRequestURI\":\"/cart/?id=7\","                        \
    "\"ClientRequestUserAgent\":\"Mozilla/5.0 (\\\"x\\\")\",\"EdgeEndTimestamp\":1506702505,"      \
    "\"EdgeResponseBytes\":9999,\"EdgeResponseStatus\":304,\"EdgeStartTimestamp\":" start          \
    ",\"RayID\":\"3a6050bcbe121a87\"}"

Test(json_log, cloudflare)
{
    struct request want = {"2001:db8::42", "/cart/", "Mozilla/5.0 (\"x\")", "shop.example.com",
        1506702504, LOG_GET, 304};
    begin(LOG_FORMAT_CLOUDFLARE);
    expect_request(&parser, CLOUDFLARE_("1506702504"), &want);
    expect_request(&parser, CLOUDFLARE_("1506702504433000200"), &want);
    expect_request(&parser, CLOUDFLARE_("\"2017-09-29T16:28:24Z\""), &want);
    want.at_s++;
    expect_request(&parser, CLOUDFLARE_("\"\""), &want); /* the end is known */
    want.at_s--;
    expect_malformed(&parser, CLOUDFLARE_("\"0001-01-01T00:00:00Z\""), "no valid time");
}

Test(json_log, nginx)
{
    struct request want = {
        "192.0.2.1", "/a", "Mozilla/5.0", "example.org", 971211336, LOG_GET, 200};
    begin(LOG_FORMAT_NGINX_JSON);
    expect_request(&parser,
        "{\"time_local\":\"10/Oct/2000:13:55:36 -0700\",\"remote_addr\":\"192.0.2.1\","
        "\"request\":\"GET /a?b HTTP/1.1\",\"status\":\"200\",\"body_bytes_sent\":\"5\","
        "\"http_referer\":\"\",\"http_user_agent\":\"Mozilla/5.0\",\"host\":\"example.org\"}",
        &want);
    expect_request(&parser,
        "{\"time_iso8601\":\"2000-10-10T20:55:36+00:00\",\"remote_addr\":\"192.0.2.1\","
        "\"request_method\":\"GET\",\"request_uri\":\"/a?b\",\"uri\":\"/rewritten\",\"status\":200,"
        "\"http_user_agent\":\"Mozilla/5.0\",\"server_name\":\"_\",\"http_host\":\"example.org\"}",
        &want);
    want.ua = "";
    want.host = "";
    expect_request(&parser,
        "{\"msec\":971211336.997,\"time_local\":\"nonsense\",\"remote_addr\":\"192.0.2.1\","
        "\"uri\":\"/a\",\"status\":200,\"http_user_agent\":\"\",\"host\":\"-\"}",
        &want);
    /* The default escapes of a log_format are none of JSON. */
    expect_malformed(
        &parser, "{\"msec\":971211336.997,\"remote_addr\":\"192.0.2.1\",\"uri\":\"/\\x22\"}", "");
}

Test(json_log, deep_nesting_is_refused)
{
    char text[256] = "{\"a\":";
    memset(text + 5, '[', 100);
    begin(LOG_FORMAT_CADDY);
    expect_malformed(&parser, text, "nested too deeply");
}
