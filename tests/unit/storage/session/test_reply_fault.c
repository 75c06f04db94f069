#include "storage/session/reply_fault.h"

#include <criterion/criterion.h>

TestSuite(reply_fault, .timeout = 60);

/* Texts as Redis 7 sends them. */
static const struct {
    const char *text;
    enum reply_fault fault;
    enum storage_err err;
    bool lost;
} rows[] = {
    {"NOSCRIPT No matching script. Please use EVAL.", REPLY_RECONNECT, STORAGE_DOWN, true},
    {"READONLY You can't write against a read only replica.", REPLY_RECONNECT, STORAGE_REFUSED,
        true},
    {"NOAUTH Authentication required.", REPLY_RECONNECT, STORAGE_REFUSED, true},
    {"LOADING Redis is loading the dataset in memory", REPLY_LATER, STORAGE_DOWN, false},
    {"BUSY Redis is busy running a script.", REPLY_LATER, STORAGE_DOWN, false},
    {"MASTERDOWN Link with MASTER is down", REPLY_RECONNECT, STORAGE_DOWN, true},
    {"MOVED 3999 127.0.0.1:6381", REPLY_RECONNECT, STORAGE_DOWN, true},
    {"ASK 3999 127.0.0.1:6381", REPLY_LATER, STORAGE_DOWN, false},
    {"ASKING is no code", REPLY_FAILED, STORAGE_REFUSED, false},
    {"TRYAGAIN Multiple keys request during rehashing of slot", REPLY_LATER, STORAGE_DOWN, false},
    {"CLUSTERDOWN The cluster is down", REPLY_LATER, STORAGE_DOWN, false},
    {"OOM command not allowed when used memory > 'maxmemory'.", REPLY_FULL, STORAGE_OOM, false},
    {"MISCONF Errors writing to the AOF file", REPLY_REFUSED, STORAGE_REFUSED, false},
    {"MISCONF Errors writing to the AOF file: No space left on device", REPLY_REFUSED, STORAGE_DISK,
        false},
    {"NOREPLICAS Not enough good replicas to write.", REPLY_REFUSED, STORAGE_REFUSED, false},
    {"NOPERM this user has no permissions", REPLY_REFUSED, STORAGE_REFUSED, false},
    {"BUSYKEY Target key name already exists.", REPLY_FAILED, STORAGE_REFUSED, false},
    {"WRONGTYPE Operation against a key", REPLY_FAILED, STORAGE_REFUSED, false},
    {"ERR", REPLY_FAILED, STORAGE_REFUSED, false},
    {"", REPLY_FAILED, STORAGE_REFUSED, false},
};

Test(reply_fault, what_an_error_means)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct reply reply = {.type = REPLY_ERROR, .text = slice_of(rows[i].text)};
        bool lost = false;
        cr_expect_eq(reply_fault(&reply), rows[i].fault, "%s", rows[i].text);
        cr_expect_eq(reply_err(&reply, &lost), rows[i].err, "%s", rows[i].text);
        cr_expect_eq(lost, rows[i].lost, "%s", rows[i].text);
    }
}

Test(reply_fault, a_lost_connection_stays_lost)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct reply reply = {.type = REPLY_ERROR, .text = slice_of(rows[i].text)};
        bool lost = true;
        cr_expect_eq(reply_err(&reply, &lost), rows[i].err);
        cr_expect(lost, "%s", rows[i].text);
    }
}
