/* merge_visits_write.c - the commands that keep the last event of each visitor. */
#include "storage/merge/merge_visits.h"

#include "storage/merge/merge_visits_state.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

void visit_command(struct buffer *out, const char *command, const char *tag, struct slice site,
    int64_t slot, size_t n)
{
    char digits[24];
    struct key key;
    key_visit_prefix(&key, tag, site);
    size_t n_digits = decimal_print(slot, digits);
    memcpy(key.p + key.n, digits, n_digits); /* a site leaves far more room than that */
    resp_begin(out, command, (struct slice){key.p, key.n + n_digits}, n);
}

/* Write @value into @n bytes at @to.  Returns the end of these bytes. */
static char *write_number(char *to, uint64_t value, size_t n)
{
    for (size_t i = n; i-- > 0; value >>= 8) {
        to[i] = (char)(value & 0xff);
    }
    return to + n;
}

/* A day as it is stored.  One that does not fit is stored as none, so its bit is set once more. */
static uint64_t day_number(int32_t day)
{
    return day <= -DAY_ZERO || day >= DAY_ZERO ? 0 : (uint64_t)(day + DAY_ZERO);
}

static void write_visitor(
    const struct merge_visits *merge, const struct visitor *visitor, struct buffer *out)
{
    char value[USER_BYTES];
    int64_t last = visitor->last_s | (visitor->is_bounce ? BOUNCE_BIT : 0);
    char *end = write_number(value, (uint64_t)last, TIME_BYTES);
    end = write_number(end, (uint64_t)visitor->arrival_s, TIME_BYTES);
    if (visitor_has_index(merge, visitor)) {
        end = write_number(end, visitor->index, INDEX_BYTES);
        end = write_number(end, day_number(visitor->active_day), DAY_BYTES);
        end = write_number(end, visitor->generation, GENERATION_BYTES);
    }
    resp_word(out, visitor->id.bytes, sizeof(visitor->id.bytes));
    resp_word(out, value, (size_t)(end - value));
}

/* Have the hash of @slot expire.  A slot is asked for until the next one is over, by the arrival of
 * the events that are counted then.  Events of a killed process can wait in its log for hours until
 * another process counts them, and then the visitors' events before them must still be there. */
static void write_expiry(const struct merge_visits *merge, const char *tag, struct slice site,
    int64_t slot, struct buffer *out)
{
    visit_command(out, "EXPIRE", tag, site, slot, 2);
    resp_decimal(out, SLOTS_BACK * SLOT_TIMEOUTS * merge->timeout_s + UNCOUNTED_S);
    resp_text(out, "NX");
}

/* Keep @group's visitors whose last event arrived in @slot; *next_slot becomes the first later slot
 * that others of them have. */
static size_t write_slot(const struct merge_visits *merge, const struct group *group,
    const char *tag, int64_t slot, int64_t *next_slot, struct buffer *out)
{
    size_t n = 0;
    for (uint32_t v = group->visitors.first; v != INDEX_NONE; v = merge->visitors[v].next) {
        const struct visitor *visitor = &merge->visitors[v];
        int64_t is = merge_visits_slot(merge, visitor->arrival_s);
        n += visitor->is_added && is == slot;
        if (visitor->is_added && is > slot && is < *next_slot) {
            *next_slot = is;
        }
    }
    if (n == 0) {
        return 0;
    }
    visit_command(out, "HSET", tag, group->site->name, slot, 2 * n);
    for (uint32_t v = group->visitors.first; v != INDEX_NONE; v = merge->visitors[v].next) {
        const struct visitor *visitor = &merge->visitors[v];
        if (visitor->is_added && merge_visits_slot(merge, visitor->arrival_s) == slot) {
            write_visitor(merge, visitor, out);
        }
    }
    write_expiry(merge, tag, group->site->name, slot, out);
    return 2;
}

size_t merge_visits_write(const struct merge_visits *merge, const char *tag, struct buffer *out)
{
    size_t n = 0;
    for (size_t i = 0; i < merge->n_groups; i++) {
        const struct group *group = &merge->groups[i];
        int64_t slot = INT64_MIN;
        for (;;) {
            int64_t next_slot = INT64_MAX;
            n += write_slot(merge, group, tag, slot, &next_slot, out);
            if (next_slot == INT64_MAX) {
                break;
            }
            slot = next_slot;
        }
        if (group->is_new) { /* the slot two before this one is not asked for any more */
            visit_command(out, "UNLINK", tag, group->site->name, group->slot - SLOTS_BACK, 0);
            n++;
        }
    }
    return n;
}
