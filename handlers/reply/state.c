#include "handlers/reply/state.h"

#include <stdlib.h>

#include "handlers/reply/problem.h"

void *state_begin(
    struct http_exchange *exchange, size_t size, void (*release)(struct http_exchange *exchange))
{
    void *state = calloc(1, size);
    if (state == NULL) {
        (void)problem_no_memory(&exchange->response);
        return NULL;
    }
    exchange->state = state;
    exchange->release = release;
    return state;
}

bool state_has_time(struct http_exchange *exchange)
{
    if (exchange->request.now_ms == 0) {
        problem_from_storage(&exchange->response, STORAGE_DOWN, NULL);
    }
    return exchange->request.now_ms != 0;
}
