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

int64_t repeat_due_us(const struct repeats *repeats, uint64_t question)
{
    const struct repeat *repeat = &repeats->all[question / 2 % REPEATS];
    return question != 0 && repeat->question == question && repeat->crowded ? repeat->due_us : 0;
}

void repeat_begin(struct repeats *repeats, uint64_t question, int64_t now_us)
{
    struct repeat *repeat = &repeats->all[question / 2 % REPEATS];
    if (repeat->question == question) {
        repeat->due_us = now_us + REPEAT_HOLD_MAX_US; /* until it has ended, mostly */
    }
}

void repeat_end(
    struct repeats *repeats, uint64_t question, int64_t begun_us, int64_t now_us, size_t answered)
{
    struct repeat *repeat = &repeats->all[question / 2 % REPEATS];
    if (question == 0) {
        return;
    }
    int64_t due_us = now_us + (now_us - begun_us) * REPEAT_HOLD_TIMES;
    int64_t latest_us = begun_us + REPEAT_HOLD_MAX_US;
    *repeat = (struct repeat){question, due_us < latest_us ? due_us : latest_us, answered > 1};
}
