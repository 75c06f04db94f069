#include "storage/redis/reply.h"

#include <stddef.h>
#include <string.h>

bool reply_is_error(const struct reply *reply, const char *code)
{
    size_t n = strlen(code);
    return reply->type == REPLY_ERROR && reply->text.n >= n &&
           memcmp(reply->text.p, code, n) == 0 && (reply->text.n == n || reply->text.p[n] == ' ');
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
