#include "storage/schema/log_state.h"

#include <inttypes.h>
#include <stdio.h>

#define DIGITS_MAX 18 /* of a number, so that no sum overflows */

bool log_id_is(struct slice text)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
            return false;
        }
    }
    return text.n == LOG_ID_TEXT;
}

/* Take the digits at the begin of @text. */
static bool number_take(struct slice *text, uint64_t *ret)
{
    uint64_t value = 0;
    size_t n = 0;
    while (n < text->n && n <= DIGITS_MAX && text->p[n] >= '0' && text->p[n] <= '9') {
        value = value * 10 + (uint64_t)(text->p[n++] - '0');
    }
    if (n == 0 || n > DIGITS_MAX) {
        return false;
    }
    *text = (struct slice){text->p + n, text->n - n};
    *ret = value;
    return true;
}

/* Take @mark at the begin of @text. */
static bool mark_take(struct slice *text, char mark)
{
    if (text->n == 0 || *text->p != mark) {
        return false;
    }
    *text = (struct slice){text->p + 1, text->n - 1};
    return true;
}

bool log_head_parse(struct slice id, struct slice value, struct log_head *ret)
{
    struct log_head head = {.n = 0};
    uint64_t time_ms = 0;
    if (!log_id_is(id) || !number_take(&value, &head.n) || !mark_take(&value, ' ')) {
        return false;
    }
    struct slice era = {value.p, 0};
    while (era.n < value.n && value.p[era.n] != ' ') {
        era.n++;
    }
    value = (struct slice){value.p + era.n, value.n - era.n};
    if (era.n == 0 || era.n > LOG_ID_TEXT || !mark_take(&value, ' ') ||
        !number_take(&value, &time_ms) || value.n > 0) {
        return false;
    }
    memcpy(head.id, id.p, LOG_ID_TEXT);
    memcpy(head.era, era.p, era.n);
    head.time_ms = (int64_t)time_ms;
    *ret = head;
    return true;
}

size_t log_cursor_print(const struct log_cursor *cursor, char text[LOG_CURSOR_TEXT])
{
    int n = cursor->events == 0 ? snprintf(text, LOG_CURSOR_TEXT, "%" PRIu64, cursor->whole)
                                : snprintf(text, LOG_CURSOR_TEXT, "%" PRIu64 ":%" PRIu64,
                                      cursor->whole + 1, cursor->events);
    return (size_t)n;
}

bool log_cursor_parse(const struct reply *field, struct log_cursor *ret)
{
    struct log_cursor cursor = {0, 0};
    if (field->type == REPLY_NIL) {
        *ret = cursor;
        return true;
    }
    struct slice text = field->text;
    if (field->type != REPLY_TEXT || !number_take(&text, &cursor.whole)) {
        return false;
    }
    if (mark_take(&text, ':')) {
        if (cursor.whole == 0 || !number_take(&text, &cursor.events)) {
            return false;
        }
        cursor.whole--;
    }
    if (text.n > 0) {
        return false;
    }
    *ret = cursor;
    return true;
}
