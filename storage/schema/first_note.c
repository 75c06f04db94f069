#include "storage/schema/first_note.h"

void first_note_put(
    struct buffer *out, uint32_t index, const struct slice *actions, unsigned n_actions)
{
    buffer_decimal(out, index);
    for (unsigned i = 0; i < n_actions; i++) {
        buffer_append(out, " ", 1);
        buffer_append(out, actions[i].p, actions[i].n);
    }
    buffer_append(out, "\n", 1);
}

/* Take a word off *line, and the blank behind it.  False: it has no bytes or more than @max, or the
 * blank is the last byte. */
static bool take_word(struct slice *line, size_t max, struct slice *ret)
{
    size_t n = line->n;
    *ret = slice_until(line, ' ');
    bool is_open = line->n == 0 && ret->n < n;
    return ret->n >= 1 && ret->n <= max && !is_open;
}

bool first_note_next(
    struct slice *text, struct first_event *ret, struct slice actions[static EVENT_ACTIONS_MAX])
{
    struct slice line, rest = *text;
    uint64_t index;
    *ret = (struct first_event){.actions = actions};
    if (!slice_take_until(&rest, '\n', &line) || !slice_take_number(&line, &index) ||
        index > UINT32_MAX || !slice_take(&line, ' ')) {
        return false;
    }
    ret->index = (uint32_t)index;
    do {
        if (ret->n_actions == EVENT_ACTIONS_MAX ||
            !take_word(&line, EVENT_ACTION_MAX, &actions[ret->n_actions])) {
            return false;
        }
        ret->n_actions++;
    } while (line.n > 0);
    *text = rest;
    return true;
}
