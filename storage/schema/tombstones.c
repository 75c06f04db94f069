#include "storage/schema/tombstones.h"

/* Take the next line off *rest: its field, as it is written, and its instant.  False: there is no
 * more line. */
static bool tombstones_next(struct slice *rest, struct slice *ret_field, int64_t *ret_before_ms)
{
    struct slice line;
    uint64_t before_ms = 0;
    if (!slice_take_until(rest, '\n', &line) || !slice_take_until(&line, ' ', ret_field)) {
        return false;
    }
    (void)slice_take_number(&line, &before_ms);
    *ret_before_ms = before_ms == 0 ? INT64_MAX : (int64_t)before_ms;
    return true;
}

/* Take the next byte off a written field and decode it; -1: the field ends, or is malformed. */
static int field_byte(struct slice *written)
{
    if (written->n == 0) {
        return -1;
    }
    int c = (unsigned char)written->p[0];
    size_t n = c == '%' ? 3 : 1;
    if (n > written->n) {
        return -1;
    }
    if (c == '%') {
        int high = hex_digit(written->p[1]), low = hex_digit(written->p[2]);
        c = high < 0 || low < 0 ? -1 : high * 16 + low;
    }
    written->p += n;
    written->n -= n;
    return c;
}

/* Take @text off the front of the written field.  False: the field begins otherwise, and some of it
 * may be taken off. */
static bool field_skip(struct slice *written, struct slice text)
{
    for (size_t i = 0; i < text.n; i++) {
        if (field_byte(written) != (unsigned char)text.p[i]) {
            return false;
        }
    }
    return true;
}

/* Does the written field stand for @page of @site? */
static bool field_has_page(struct slice written, struct slice site, struct slice page)
{
    if (written.n <= site.n || written.p[site.n] != '%' || !field_skip(&written, site) ||
        field_byte(&written) != '\n') {
        return false;
    }
    bool is_prefix = field_byte(&written) == '^';
    for (size_t i = 0; i < page.n && written.n > 0; i++) {
        if (field_byte(&written) != (unsigned char)page.p[i]) {
            return false;
        }
        if (written.n == 0) {
            return is_prefix || i + 1 == page.n;
        }
    }
    return false;
}

struct tombstones tombstones_of(struct slice text)
{
    struct tombstones all = {text, INT64_MIN};
    struct slice field;
    int64_t before_ms;
    while (tombstones_next(&text, &field, &before_ms)) {
        all.last_ms = before_ms > all.last_ms ? before_ms : all.last_ms;
    }
    return all;
}

int64_t tombstones_before(const struct tombstones *tombstones, struct slice field)
{
    struct slice rest = tombstones->text;
    struct slice is;
    int64_t before_ms;
    while (tombstones_next(&rest, &is, &before_ms)) {
        if (field_skip(&is, field) && is.n == 0) {
            return before_ms;
        }
    }
    return INT64_MIN;
}

bool tombstones_going_on(const struct tombstones *tombstones, struct key *ret)
{
    struct slice rest = tombstones->text;
    struct slice field;
    int64_t before_ms;
    while (tombstones_next(&rest, &field, &before_ms)) {
        if (before_ms != INT64_MAX) {
            continue;
        }
        int c = 0;
        for (ret->n = 0; ret->n < sizeof(ret->p) && (c = field_byte(&field)) >= 0; ret->n++) {
            ret->p[ret->n] = (char)c;
        }
        return c < 0 && field.n == 0;
    }
    return false;
}

bool tombstones_cover(const struct tombstones *tombstones, struct slice site, int64_t arrival_ms)
{
    return arrival_ms < tombstones->last_ms && arrival_ms < tombstones_before(tombstones, site);
}

bool tombstones_cover_page(
    const struct tombstones *tombstones, struct slice site, struct slice page, int64_t arrival_ms)
{
    struct slice rest = tombstones->text;
    struct slice field;
    int64_t before_ms;
    while (arrival_ms < tombstones->last_ms && tombstones_next(&rest, &field, &before_ms)) {
        if (arrival_ms < before_ms && field_has_page(field, site, page)) {
            return true;
        }
    }
    return false;
}
