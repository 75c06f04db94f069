#include "storage/schema/log_state.h"

#include <inttypes.h>
#include <stdio.h>

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

bool log_head_parse(struct slice id, struct slice value, struct log_head *ret)
{
    struct log_head head = {.n = 0};
    uint64_t time_ms = 0;
    if (!log_id_is(id) || !slice_take_number(&value, &head.n) || !slice_take(&value, ' ')) {
        return false;
    }
    struct slice era;
    if (!slice_take_until(&value, ' ', &era) || era.n == 0 || era.n > LOG_ID_TEXT ||
        !slice_take_number(&value, &time_ms) || value.n > 0) {
        return false;
    }
    memcpy(head.id, id.p, LOG_ID_TEXT);
    memcpy(head.era, era.p, era.n);
    head.time_ms = (int64_t)time_ms;
    *ret = head;
    return true;
}

bool log_closed_parse(struct slice name, struct slice value, uint64_t *ret)
{
    uint64_t n = 0;
    if (!slice_equal(name, SLICE("closed")) || !slice_take_number(&value, &n) || value.n > 0) {
        return false;
    }
    *ret = n;
    return true;
}

static bool is_same(struct log_position a, struct log_position b)
{
    return a.whole == b.whole && a.events == b.events;
}

uint64_t log_cursor_whole(const struct log_cursor *cursor)
{
    uint64_t least = cursor->at[0].whole;
    for (unsigned c = 1; c < LOG_STRIPES; c++) {
        least = cursor->at[c].whole < least ? cursor->at[c].whole : least;
    }
    return least;
}

static size_t position_print(struct log_position at, char *text, size_t size)
{
    int n = at.events == 0 ? snprintf(text, size, "%" PRIu64, at.whole)
                           : snprintf(text, size, "%" PRIu64 ":%" PRIu64, at.whole + 1, at.events);
    return (size_t)n;
}

size_t log_cursor_print(const struct log_cursor *cursor, char text[LOG_CURSOR_TEXT])
{
    size_t n = 0;
    for (unsigned c = 0, end; c < LOG_STRIPES; c = end) {
        for (end = c + 1; end < LOG_STRIPES && is_same(cursor->at[end], cursor->at[c]); end++) {
        }
        if (c > 0) {
            text[n++] = ',';
        }
        n += position_print(cursor->at[c], text + n, LOG_CURSOR_TEXT - n);
        if (end - c > 1 && end - c < LOG_STRIPES) {
            n += (size_t)snprintf(text + n, LOG_CURSOR_TEXT - n, "*%u", end - c);
        }
    }
    return n;
}

/* Take "n" or "n:i" off the front of @text.  False: @text begins otherwise. */
static bool position_take(struct slice *text, struct log_position *ret)
{
    *ret = (struct log_position){0, 0};
    if (!slice_take_number(text, &ret->whole)) {
        return false;
    }
    if (slice_take(text, ':')) {
        if (ret->whole == 0 || !slice_take_number(text, &ret->events)) {
            return false;
        }
        ret->whole--;
    }
    return true;
}

bool log_cursor_parse(const struct reply *field, struct log_cursor *ret)
{
    struct log_cursor cursor;
    struct slice text = field->type == REPLY_NIL ? SLICE("0") : field->text;
    unsigned c = 0;
    if (field->type != REPLY_TEXT && field->type != REPLY_NIL) {
        return false;
    }
    do {
        struct log_position at;
        uint64_t times = 1;
        if (!position_take(&text, &at) ||
            (slice_take(&text, '*') && !slice_take_number(&text, &times))) {
            return false;
        }
        if (c == 0 && text.n == 0 && times == 1) {
            times = LOG_STRIPES;
        }
        if (times == 0 || times > LOG_STRIPES - c) {
            return false;
        }
        for (; times > 0; times--) {
            cursor.at[c++] = at;
        }
    } while (c < LOG_STRIPES && slice_take(&text, ','));
    if (c < LOG_STRIPES || text.n > 0) {
        return false;
    }
    *ret = cursor;
    return true;
}

bool log_cursor_least(const struct reply *field, uint64_t *least)
{
    struct log_cursor cursor;
    if (!log_cursor_parse(field, &cursor)) {
        return false;
    }
    uint64_t whole = log_cursor_whole(&cursor);
    *least = whole < *least ? whole : *least;
    return true;
}
