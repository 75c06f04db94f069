#include "storage/read/repeat.h"

#include "storage/schema/partition.h"

uint64_t question_hash(
    const struct window_question *asked, const struct slice *pages, size_t n_pages, uint64_t what)
{
    uint64_t hash = page_hash(asked->site, n_pages > 0 ? pages[0] : SLICE(""));
    uint64_t words[] = {
        (uint64_t)asked->window.from_s, (uint64_t)asked->window.to_s, what, n_pages};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return hash | 1;
}

static struct repeat *place_of(struct repeats *repeats, uint64_t question)
{
    return &repeats->all[question / 2 % REPEATS];
}

int64_t repeat_due_us(const struct repeats *repeats, uint64_t question)
{
    const struct repeat *repeat = &repeats->all[question / 2 % REPEATS];
    if (question == 0 || repeat->question != question) {
        return 0;
    }
    return repeat->settling ? INT64_MAX : repeat->crowded ? repeat->due_us : 0;
}

/* The place of @question, in which another question is forgotten.  NULL: another question has the
 * place and is settled. */
static struct repeat *take_place(struct repeats *repeats, uint64_t question)
{
    struct repeat *repeat = place_of(repeats, question);
    if (repeat->question != question) {
        if (repeat->settling) {
            return NULL;
        }
        *repeat = (struct repeat){.question = question};
    }
    return repeat;
}

void repeat_begin(struct repeats *repeats, uint64_t question, int64_t now_us)
{
    struct repeat *repeat = question == 0 ? NULL : take_place(repeats, question);
    if (repeat != NULL) {
        repeat->due_us = now_us + REPEAT_HOLD_MAX_US; /* most are answered before: repeat_end() */
        repeat->settling = true;
    }
}

bool repeat_settled(struct repeats *repeats, uint64_t question)
{
    struct repeat *repeat = place_of(repeats, question);
    bool was = question != 0 && repeat->question == question && repeat->settling;
    if (was) {
        repeat->settling = false;
    }
    return was;
}

void repeat_end(
    struct repeats *repeats, uint64_t question, int64_t begun_us, int64_t now_us, size_t answered)
{
    struct repeat *repeat = question == 0 ? NULL : take_place(repeats, question);
    if (repeat == NULL) {
        return;
    }
    int64_t due_us = now_us + (now_us - begun_us) * REPEAT_HOLD_TIMES;
    int64_t latest_us = begun_us + REPEAT_HOLD_MAX_US;
    repeat->due_us = due_us < latest_us ? due_us : latest_us;
    repeat->crowded = answered > 1;
}
