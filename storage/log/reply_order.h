/* reply_order.h - whose the next reply on a connection is.
 *
 * Layer: storage, pure.  One owner.  Redis answers in the order of commands; who sends several
 * kinds of them on one connection notes here, run by run, whose they were.
 */
#ifndef STORAGE_LOG_REPLY_ORDER_H
#define STORAGE_LOG_REPLY_ORDER_H

#include <stdbool.h>
#include <stddef.h>

/* Zeroed it is empty.  Release with free(runs). */
struct reply_order {
    struct reply_run {
        int owner;
        size_t n;
    } * runs; /* a ring; capacity is a power of two */
    size_t head, n, capacity;
};

/* @n commands of @owner are sent next.  False: out of memory. */
bool reply_order_push(struct reply_order *order, int owner, size_t n);

/* Whose reply comes now?  False: nobody's. */
bool reply_order_pop(struct reply_order *order, int *ret_owner);

void reply_order_clear(struct reply_order *order);

#endif
