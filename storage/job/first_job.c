#include "storage/job/first_job.h"

#include <sodium.h>

#include "storage/time/day.h"

struct key_digest first_ticket(const struct request_key *key)
{
    struct key_digest ticket;
    if (key == NULL) {
        randombytes_buf(ticket.bytes, sizeof(ticket.bytes));
        return ticket;
    }
    return request_key_digest((struct slice){(const char *)key->key.bytes, sizeof(key->key.bytes)},
        (struct slice){(const char *)key->body.bytes, sizeof(key->body.bytes)});
}

bool first_event_asks(const struct event *event)
{
    bool any = false;
    for (unsigned i = 0; event->user.n > 0 && i < event->n_actions; i++) {
        any = any || !slice_equal(event->actions[i], ACTION_ACTIVE);
    }
    return any;
}
