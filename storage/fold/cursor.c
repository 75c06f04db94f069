#include "storage/fold/cursor.h"

#include <string.h>

#include "storage/base/buffer.h"

static bool parse_digits(struct slice text, uint64_t *ret)
{
    const struct reply digits = {.type = REPLY_TEXT, .text = text};
    int64_t value = reply_integer(&digits, -1);
    *ret = (uint64_t)value;
    return value >= 0;
}

bool cursor_parse(const struct reply *reply, struct cursor *ret)
{
    if (reply->type == REPLY_NIL) {
        *ret = (struct cursor){0};
        return true;
    }
    if (reply->type != REPLY_TEXT || reply->text.n == 0) {
        return false;
    }
    const char *colon = memchr(reply->text.p, ':', reply->text.n);
    size_t head_n = colon == NULL ? reply->text.n : (size_t)(colon - reply->text.p);
    uint64_t n;
    uint64_t events = 0;
    if (!parse_digits((struct slice){reply->text.p, head_n}, &n)) {
        return false;
    }
    if (colon == NULL) {
        *ret = (struct cursor){.whole = n};
        return true;
    }
    struct slice tail = {colon + 1, reply->text.n - head_n - 1};
    if (n == 0 || !parse_digits(tail, &events) || events == 0 || events > UINT32_MAX) {
        return false;
    }
    *ret = (struct cursor){n - 1, (uint32_t)events};
    return true;
}

size_t cursor_print(struct cursor cursor, char text[CURSOR_TEXT])
{
    if (cursor.events == 0) {
        return decimal_print((int64_t)cursor.whole, text);
    }
    size_t n = decimal_print((int64_t)cursor.whole + 1, text);
    text[n++] = ':';
    return n + decimal_print(cursor.events, text + n);
}
