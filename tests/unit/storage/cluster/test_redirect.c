/* MOVED and ASK, in the words of Redis 7.0.15 and Valkey 8.0.1. */
#include "storage/cluster/redirect.h"

#include <criterion/criterion.h>

TestSuite(redirect, .timeout = 60);

Test(redirect, good)
{
    static const struct {
        const char *error;
        enum redirect_kind kind;
        const char *host;
        int port;
    } cases[] = {
        {"MOVED 12182 127.0.0.1:6381", REDIRECT_MOVED, "127.0.0.1", 6381},
        {"ASK 0 node2.example:65535", REDIRECT_ASK, "node2.example", 65535},
        {"MOVED 16383 2001:db8::1:6379", REDIRECT_MOVED, "2001:db8::1", 6379},
        {"MOVED 15495 :52327", REDIRECT_MOVED, "asked.example", 52327},
        {"ASK 15495 ?:52327", REDIRECT_ASK, "", 52327},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct redis_address found;
        cr_expect_eq(redirect_parse(slice_of(cases[i].error), "asked.example", &found),
            cases[i].kind, "%s", cases[i].error);
        cr_expect_str_eq(found.host, cases[i].host, "%s", cases[i].error);
        cr_expect_eq(found.port, cases[i].port, "%s", cases[i].error);
    }
}

Test(redirect, everything_else)
{
    static const char *const errors[] = {"", "MOVED", "MOVED ", "MOVED 1", "MOVED 1 ", "MOVED 1 a",
        "MOVED 1 a:", "MOVED 1 a:0", "MOVED 1 a:65536", "MOVED 1 a:7x", "MOVED 16384 a:7",
        "MOVED -1 a:7", "MOVED x a:7", "MOVED  1 a:7", "MOVED 1 a b:7", "MOVED 1 a\n:7",
        "moved 1 a:7", "ASKING 1 a:7", "TRYAGAIN Multiple keys request during rehashing of slot",
        "CLUSTERDOWN Hash slot not served", "ERR MOVED 1 a:7", "MOVED 99999999999999 a:7"};
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        struct redis_address found = {.port = 4711};
        cr_expect_eq(
            redirect_parse(slice_of(errors[i]), "asked", &found), REDIRECT_NONE, "%s", errors[i]);
        cr_expect_eq(found.port, 4711, "%s: written to", errors[i]);
    }
    struct redis_address found;
    cr_expect_eq(redirect_parse((struct slice){NULL, 0}, "asked", &found), REDIRECT_NONE);
    cr_expect_eq(redirect_parse((struct slice){"MOVED 1 a:77", 11}, "asked", &found),
        REDIRECT_MOVED, "not behind its end");
    cr_expect_eq(found.port, 7);
}

/* A group that was not carried out is carried out later; any other error is its answer. */
Test(redirect, what_is_carried_out_later)
{
    static const struct {
        const char *error;
        bool is_later;
    } cases[] = {{"CLUSTERDOWN The cluster is down", true},
        {"READONLY You can't write against a read only replica.", true},
        {"MASTERDOWN Link with MASTER is down", true},
        {"TRYAGAIN Multiple keys request during rehashing of slot", true},
        {"LOADING Redis is loading the dataset in memory", true},
        {"OOM command not allowed when used memory > 'maxmemory'.", false},
        {"NOSCRIPT No matching script.", false}, {"ERR LOADING", false}, {"", false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct reply error = {.type = REPLY_ERROR, .text = slice_of(cases[i].error)};
        cr_expect_eq(redirect_is_later(&error), cases[i].is_later, "%s", cases[i].error);
    }
}
