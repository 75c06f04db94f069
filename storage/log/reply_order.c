#include "storage/log/reply_order.h"

#include <stdlib.h>

static struct reply_run *run_at(const struct reply_order *order, size_t i)
{
    return &order->runs[(order->head + i) & (order->capacity - 1)];
}

bool reply_order_push(struct reply_order *order, int owner, size_t n)
{
    if (n == 0) {
        return true;
    }
    if (order->n > 0 && run_at(order, order->n - 1)->owner == owner) {
        run_at(order, order->n - 1)->n += n;
        return true;
    }
    if (order->n == order->capacity) {
        size_t capacity = order->capacity == 0 ? 16 : order->capacity * 2;
        struct reply_run *runs = malloc(capacity * sizeof(*runs));
        if (runs == NULL) {
            return false;
        }
        for (size_t i = 0; i < order->n; i++) {
            runs[i] = *run_at(order, i);
        }
        free(order->runs);
        *order = (struct reply_order){.runs = runs, .n = order->n, .capacity = capacity};
    }
    order->n++;
    *run_at(order, order->n - 1) = (struct reply_run){owner, n};
    return true;
}

bool reply_order_pop(struct reply_order *order, int *ret_owner)
{
    if (order->n == 0) {
        return false;
    }
    struct reply_run *run = run_at(order, 0);
    *ret_owner = run->owner;
    if (--run->n == 0) {
        order->head = (order->head + 1) & (order->capacity - 1);
        order->n--;
    }
    return true;
}

void reply_order_clear(struct reply_order *order)
{
    order->n = 0;
}
