#include "storage/redis/reply.h"

#include <string.h>

#include "storage/base/buffer.h"

bool reply_is_error(const struct reply *reply, const char *code)
{
    size_t n = strlen(code);
    return reply->type == REPLY_ERROR && reply->text.n >= n &&
           memcmp(reply->text.p, code, n) == 0 && (reply->text.n == n || reply->text.p[n] == ' ');
}

const char *reply_complaint(const struct reply *reply)
{
    return reply->type == REPLY_ERROR ? reply->text.p : "an answer that is not understood";
}

int64_t reply_integer(const struct reply *reply, int64_t fallback)
{
    if (reply->type == REPLY_INTEGER) {
        return reply->integer;
    }
    return reply->type == REPLY_TEXT ? decimal_parse(reply->text, fallback) : fallback;
}

int64_t reply_time_us(const struct reply *reply)
{
    if (reply->type != REPLY_ARRAY || reply->n != 2) {
        return 0;
    }
    return reply_integer(&reply->items[0], 0) * 1000000 + reply_integer(&reply->items[1], 0);
}

const struct reply *reply_scan(const struct reply *reply, char cursor[static REPLY_CURSOR])
{
    if (reply->type != REPLY_ARRAY || reply->n != 2 || reply->items[0].type != REPLY_TEXT ||
        reply->items[0].text.n >= REPLY_CURSOR || reply->items[1].type != REPLY_ARRAY) {
        return NULL;
    }
    memcpy(cursor, reply->items[0].text.p, reply->items[0].text.n + 1);
    return &reply->items[1];
}

struct slice reply_field(const struct reply *reply, const char *name)
{
    struct slice rest = reply->type == REPLY_TEXT ? reply->text : SLICE("");
    struct slice head = slice_of(name);
    while (rest.n > 0) {
        struct slice line = slice_until(&rest, '\n');
        if (slice_begins(line, head)) {
            line.n -= line.p[line.n - 1] == '\r';
            return (struct slice){line.p + head.n, line.n - head.n};
        }
    }
    return (struct slice){NULL, 0};
}
