#include "storage/redis/reply.h"

#include <stddef.h>
#include <string.h>

bool reply_is_error(const struct reply *reply, const char *code)
{
    size_t n = strlen(code);
    return reply->type == REPLY_ERROR && reply->text.n >= n &&
           memcmp(reply->text.p, code, n) == 0 && (reply->text.n == n || reply->text.p[n] == ' ');
}

enum reply_fault reply_fault(const struct reply *reply)
{
    static const struct {
        const char *code;
        enum reply_fault fault;
    } faults[] = {
        {"NOSCRIPT", REPLY_RECONNECT},
        {"READONLY", REPLY_RECONNECT},
        {"NOAUTH", REPLY_RECONNECT},
        {"LOADING", REPLY_LATER},
        {"BUSY", REPLY_LATER},
        {"MASTERDOWN", REPLY_LATER},
        {"TRYAGAIN", REPLY_LATER},
        {"CLUSTERDOWN", REPLY_LATER},
        {"OOM", REPLY_FULL},
    };
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        if (reply_is_error(reply, faults[i].code)) {
            return faults[i].fault;
        }
    }
    return REPLY_REFUSED;
}

int64_t reply_integer(const struct reply *reply, int64_t fallback)
{
    if (reply->type == REPLY_INTEGER) {
        return reply->integer;
    }
    if (reply->type != REPLY_TEXT || reply->text.n == 0 || reply->text.n > 18) {
        return fallback;
    }
    int64_t value = 0;
    for (size_t i = 0; i < reply->text.n; i++) {
        char c = reply->text.p[i];
        if (c < '0' || c > '9') {
            return fallback;
        }
        value = value * 10 + (c - '0');
    }
    return value;
}

int64_t reply_time_us(const struct reply *reply)
{
    if (reply->type != REPLY_ARRAY || reply->n != 2) {
        return 0;
    }
    return reply_integer(&reply->items[0], 0) * 1000000 + reply_integer(&reply->items[1], 0);
}
