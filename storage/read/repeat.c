#include "storage/read/repeat.h"

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
