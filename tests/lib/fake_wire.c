#include "tests/lib/fake_wire.h"

#include <stdlib.h>

static void packet_release(struct fake_packet *packet)
{
    commands_release(&packet->commands);
    buffer_release(&packet->bytes);
}

/* Forget packets that have arrived. */
static void drop_arrived(struct fake_wire *wire)
{
    while (wire->first < wire->n_packets &&
           wire->packets[wire->first].next == wire->packets[wire->first].commands.n) {
        packet_release(&wire->packets[wire->first++]);
    }
    if (wire->first == wire->n_packets) {
        wire->first = wire->n_packets = 0;
    }
}

bool fake_wire_send(struct fake_wire *wire, const struct buffer *out)
{
    if (wire->n_packets == WIRE_PACKETS) {
        return false;
    }
    struct fake_packet *packet = &wire->packets[wire->n_packets++];
    *packet = (struct fake_packet){.next = 0};
    buffer_init(&packet->bytes);
    buffer_append(&packet->bytes, out->p, out->n);
    return commands_read(&packet->bytes, &packet->commands);
}

size_t fake_wire_pending(const struct fake_wire *wire)
{
    size_t n = 0;
    for (size_t i = wire->first; i < wire->n_packets; i++) {
        n += wire->packets[i].commands.n - wire->packets[i].next;
    }
    return n;
}

bool fake_wire_deliver(struct fake_wire *wire, struct fake_log *fake, bool answers)
{
    struct fake_reply ignored;
    drop_arrived(wire);
    if (wire->first == wire->n_packets || (answers && wire->n_replies == WIRE_REPLIES)) {
        return false;
    }
    struct fake_packet *packet = &wire->packets[wire->first];
    fake->wrote = wire->wrote;
    fake_log_run(fake, &packet->commands.commands[packet->next++],
        answers ? &wire->replies[wire->n_replies++] : &ignored);
    wire->wrote = fake->wrote;
    drop_arrived(wire);
    return true;
}

const struct reply *fake_wire_read(struct fake_wire *wire)
{
    if (wire->n_read == wire->n_replies) {
        return NULL;
    }
    const struct reply *reply = &wire->replies[wire->n_read++].reply;
    if (wire->n_read == wire->n_replies) { /* the reply stays where it is until the next command */
        wire->n_read = wire->n_replies = 0;
    }
    return reply;
}

void fake_wire_cut(struct fake_wire *wire, size_t n)
{
    for (size_t i = wire->first; i < wire->n_packets; i++) {
        struct fake_packet *packet = &wire->packets[i];
        size_t left = packet->commands.n - packet->next;
        size_t kept = left < n ? left : n;
        for (size_t k = packet->next + kept; k < packet->commands.n; k++) {
            free(packet->commands.commands[k].words);
        }
        packet->commands.n = packet->next + kept;
        n -= kept;
    }
    drop_arrived(wire);
}

void fake_wire_clear(struct fake_wire *wire)
{
    fake_wire_cut(wire, 0);
    wire->n_read = wire->n_replies = 0;
    wire->wrote = false;
}
