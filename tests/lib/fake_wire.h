/* fake_wire.h - a connection to a fake_log: commands on their way, and replies that were not read.
 *
 * Nothing moves by itself: the test says when Redis takes a command, and when a reply is read.
 */
#ifndef TESTS_LIB_FAKE_WIRE_H
#define TESTS_LIB_FAKE_WIRE_H

#include "tests/lib/fake_log.h"

#define WIRE_PACKETS 64
#define WIRE_REPLIES 64

struct fake_packet {
    struct buffer bytes;
    struct commands commands;
    size_t next; /* command that Redis takes next */
};

struct fake_wire {
    struct fake_packet packets[WIRE_PACKETS];
    size_t n_packets, first;
    struct fake_reply replies[WIRE_REPLIES];
    size_t n_replies, n_read;
    bool wrote; /* a WAIT waits for that; before it there is nothing to wait for */
};

/* Put the commands in @out on the way.  False: they are no commands, or too many wait. */
bool fake_wire_send(struct fake_wire *wire, const struct buffer *out);

/* How many commands are on the way? */
size_t fake_wire_pending(const struct fake_wire *wire);

/* Redis takes the next command.  @answers: its reply can be read later.  False: there is none. */
bool fake_wire_deliver(struct fake_wire *wire, struct fake_log *fake, bool answers);

/* The next reply that was not read; NULL: none. */
const struct reply *fake_wire_read(struct fake_wire *wire);

/* Only the first @n commands that are on the way will arrive. */
void fake_wire_cut(struct fake_wire *wire, size_t n);

/* Nothing is on the way, nothing is to be read. */
void fake_wire_clear(struct fake_wire *wire);

#endif
