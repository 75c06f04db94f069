/* fuzz_first_note.c - libFuzzer target: any bytes as a note of who was first.
 *
 * A line that is read can be written, and reads as the same again.
 */
#include <stdlib.h>

#include "storage/schema/first_note.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Unlike assert(), not lost with NDEBUG. */
static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

static void check_again(const struct first_event *event)
{
    struct slice actions[EVENT_ACTIONS_MAX];
    struct first_event again;
    struct buffer line;
    buffer_init(&line);
    first_note_put(&line, event->index, event->actions, event->n_actions);
    struct slice text = {line.p, line.n};
    require(!line.failed && first_note_next(&text, &again, actions) && text.n == 0);
    require(again.index == event->index && again.n_actions == event->n_actions);
    for (unsigned i = 0; i < event->n_actions; i++) {
        require(slice_equal(again.actions[i], event->actions[i]));
    }
    buffer_release(&line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice actions[EVENT_ACTIONS_MAX];
    struct first_event event;
    struct slice left = {(const char *)data, size};
    size_t before = left.n;
    while (first_note_next(&left, &event, actions)) {
        require(event.n_actions >= 1 && event.n_actions <= EVENT_ACTIONS_MAX);
        require(left.n < before && left.p + left.n == (const char *)data + size);
        before = left.n;
        for (unsigned i = 0; i < event.n_actions; i++) {
            require(event.actions[i].n >= 1 && event.actions[i].n <= EVENT_ACTION_MAX);
            require(memchr(event.actions[i].p, ' ', event.actions[i].n) == NULL);
        }
        check_again(&event);
    }
    require(left.n == before);
    return 0;
}
