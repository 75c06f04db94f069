#include "handlers/question/question.h"

#include <stdlib.h>

#include "handlers/reply/problem.h"

void *question_begin(
    struct http_exchange *exchange, size_t size, void (*release)(struct http_exchange *exchange))
{
    void *state = calloc(1, size);
    if (state == NULL || exchange->request.now_ms == 0) {
        problem_from_storage(
            &exchange->response, state == NULL ? STORAGE_NOMEM : STORAGE_DOWN, NULL);
        free(state);
        return NULL;
    }
    exchange->state = state;
    exchange->release = release;
    exchange->job.deadline_ms = exchange->request.deadline_ms;
    return state;
}
