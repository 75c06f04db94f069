#include "storage/write/unit.h"

#include <stdio.h>

#include "storage/redis/resp.h"
#include "storage/schema/key.h"

#define PROGRESS_MAX 9999999 /* seven digits: far beyond 10,000 events of three tasks */

/* Digits of a number at @text; -1 if there are none, or too many. */
static int64_t number(struct slice *text)
{
    int64_t value = 0;
    size_t n = 0;
    while (n < text->n && n < 8 && text->p[n] >= '0' && text->p[n] <= '9') {
        value = value * 10 + (text->p[n++] - '0');
    }
    text->p += n;
    text->n -= n;
    return n == 0 || value > PROGRESS_MAX ? -1 : value;
}

static bool letter(struct slice *text, char c)
{
    if (text->n == 0 || text->p[0] != c) {
        return false;
    }
    text->p++;
    text->n--;
    return true;
}

/* The marker counts @have tasks. */
static void take_progress(struct part_unit *unit, uint32_t have)
{
    unit->mark = UNIT_OPEN;
    unit->skip = 0;
    if (have < unit->from) {
        unit->mark = UNIT_BEHIND;
    } else if (have - unit->from >= unit->n) {
        unit->mark = UNIT_KNOWN;
    } else {
        unit->skip = have - unit->from;
    }
}

/* The @i-th (from 1) of the open ones, which are those that the script saw. */
static struct part_unit *nth_open(struct part_unit *units, uint32_t n, int64_t i)
{
    for (uint32_t k = 0; k < n; k++) {
        if (units[k].mark == UNIT_OPEN && --i == 0) {
            return &units[k];
        }
    }
    return NULL;
}

bool part_units_take(struct part_unit *units, uint32_t n, struct slice text)
{
    /* From the last to the first would keep the numbers true while marks change; the script tells
     * them in this order. */
    bool any = false;
    while (text.n > 0) {
        struct part_unit *unit = nth_open(units, n, number(&text));
        if (unit == NULL || !letter(&text, ' ')) {
            return false;
        }
        if (letter(&text, 'O')) {
            unit->mark = UNIT_OTHER;
        } else if (letter(&text, 'L')) {
            unit->mark = UNIT_LATE;
        } else {
            int64_t have = number(&text);
            if (have < 0) {
                return false;
            }
            take_progress(unit, (uint32_t)have);
        }
        any = true;
        if (text.n > 0 && (!letter(&text, ' ') || text.n == 0)) {
            return false;
        }
    }
    return any;
}

void part_units_forget(struct part_unit *units, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (units[i].mark != UNIT_DIRECT && units[i].mark != UNIT_GONE) {
            units[i].mark = UNIT_OPEN;
        }
        units[i].skip = 0;
    }
}

void part_units_set(struct part_unit *units, uint32_t n, uint32_t unit, enum unit_mark mark)
{
    for (uint32_t i = 0; i < n; i++) {
        if (units[i].unit == unit) {
            units[i].mark = mark;
        }
    }
}

enum unit_mark part_units_mark(const struct part_unit *units, uint32_t n, uint32_t unit)
{
    for (uint32_t i = 0; i < n; i++) {
        if (units[i].unit == unit) {
            return units[i].mark;
        }
    }
    return UNIT_OPEN;
}

bool part_units_pass(
    const struct part_unit *units, uint32_t n, struct unit_cursor *cursor, uint32_t row_unit)
{
    if (row_unit == 0) {
        return true;
    }
    while (cursor->at < n && units[cursor->at].unit != row_unit) {
        cursor->at++;
        cursor->task = 0;
    }
    if (cursor->at == n) {
        return false; /* not reached: every keyed row's unit is listed, in order */
    }
    uint32_t task = cursor->task++;
    enum unit_mark mark = units[cursor->at].mark;
    return mark == UNIT_DIRECT || (mark == UNIT_OPEN && task >= units[cursor->at].skip);
}

void part_units_write(const struct part_unit *units, uint32_t n, const struct unit *all,
    const char *tag, const struct partitions *homes, struct buffer *keys, size_t *n_keys,
    struct buffer *args, size_t *n_args)
{
    uint32_t open = 0;
    for (uint32_t i = 0; i < n; i++) {
        open += units[i].mark == UNIT_OPEN ? 1 : 0;
    }
    resp_decimal(args, homes != NULL ? open : 0);
    resp_decimal(args, open);
    *n_args += 2 + 3 * (size_t)open;
    *n_keys += homes != NULL ? 2 * (size_t)open : open;
    for (uint32_t i = 0; i < n; i++) {
        const struct part_unit *unit = &units[i];
        if (unit->mark != UNIT_OPEN) {
            continue;
        }
        const struct unit *request = &all[unit->unit - 1];
        struct key key;
        char value[20 + sizeof(request->body.bytes) + 8];
        key_unit(&key, tag, &request->key);
        resp_word(keys, key.p, key.n);
        int length = snprintf(value, sizeof(value), "%013lld%07u", (long long)request->gen_ms,
            (unsigned)(unit->from + unit->n));
        memcpy(value + length, request->body.bytes, sizeof(request->body.bytes));
        resp_word(args, value, (size_t)length + sizeof(request->body.bytes));
        resp_decimal(args, request->until_ms);
        resp_decimal(args, unit->from + unit->skip);
    }
    for (uint32_t i = 0; homes != NULL && i < n; i++) {
        const struct claim_digest *claim = &all[units[i].unit - 1].key;
        if (units[i].mark == UNIT_OPEN) {
            struct key key;
            key_claim(&key, homes->tag[claim_partition(homes, claim)], claim);
            resp_word(keys, key.p, key.n);
        }
    }
}
