/* Amazon's load balancer, in lines as its document shows them, with made-up addresses. */
#include "tests/unit/service/formats/request_check.h"

#define HEAD_(type, client)                                                                        \
    type " 2018-07-02T22:23:00.186641Z app/my-loadbalancer/50dc6c495c0c9188 " client               \
         " 10.0.0.1:80 0.086 0.048 0.037 "
#define TAIL_                                                                                      \
    " ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:elasticloadbalancing:us-east-2:123456789012:"    \
    "targetgroup/my-targets/73e2d6bc24d8a067 \"Root=1-58337281-1d84f3d73c47ec4e58577259\" "        \
    "\"www.example.com\" \"-\" 1 2018-07-02T22:22:48.364000Z \"forward\" \"-\" \"-\""

static struct log_parser parser;

static void begin(void)
{
    log_parser_init(&parser, LOG_FORMAT_ALB, NULL);
}

Test(alb, requests)
{
    struct request want = {
        "192.168.131.39", "/a b", "curl/7.46.0", "www.example.com:443", 1530570180, LOG_GET, 200};
    begin();
    expect_request(&parser,
        HEAD_("https", "192.168.131.39:2817") "200 503 0 57 \"GET https://www.example.com:443/a "
                                              "b?c HTTP/1.1\" \"curl/7.46.0\"" TAIL_,
        &want);
    /* no target, an address of version 6, an empty path, nothing behind the agent */
    expect_request(&parser,
        "h2 2018-07-02T22:23:00Z app/my-loadbalancer/50dc6c495c0c9188 [2001:db8::1]:2817 - -1 -1 "
        "-1 "
        "460 - 0 57 \"POST http://www.example.com?x=/y HTTP/2.0\" \"a \\\"b\\\" c\"",
        &(struct request){
            "2001:db8::1", "/", "a \\\"b\\\" c", "www.example.com", 1530570180, LOG_POST, 460});
}

Test(alb, malformed)
{
    begin();
    expect_malformed(&parser, "", "not all fields");
    expect_malformed(&parser, "http", "not all fields");
    expect_malformed(
        &parser, HEAD_("tcp", "192.0.2.1:2") "200 200 0 57 \"GET http://h/ H\" \"u\"", "no type");
    expect_malformed(&parser,
        HEAD_("http", "192.0.2.1:2") "400 - 0 272 \"- http://h:80- -\" \"-\"" TAIL_,
        "no valid request");
    expect_malformed(&parser, HEAD_("http", "192.0.2.1:2") "400 - 0 272 \"- - - \" \"-\"" TAIL_,
        "no valid request");
    expect_malformed(
        &parser, HEAD_("http", "192.0.2.1:2") "200 200 0 57 \"GET /\" \"u\"", "no valid request");
    expect_malformed(
        &parser, HEAD_("http", "192.0.2.1:2") "200 200 0 57 \"GET http://h/ H", "not all fields");
    expect_malformed(&parser, HEAD_("http", "192.0.2.1:2") "200 200 0 57 \"GET http://h/\" \"u\\",
        "not all fields");
    expect_malformed(&parser, HEAD_("http", "192.0.2.1:2") "200 200 0 57 \"GET http://h/\"x \"u\"",
        "not all fields");
    expect_malformed(&parser,
        "http 9999-07-02T22:23:00Z app 192.0.2.1:2 - 0 0 0 200 - 0 5 \"GET http://h/ HTTP/1\" "
        "\"u\"",
        "no valid time");
}
