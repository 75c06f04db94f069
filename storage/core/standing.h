/* standing.h - since when, and until when, Redis is known not to have gone back.
 *
 * Layer: storage.  Thread-safe.
 *
 * A Redis that crashes may come back with an earlier state (durability.h), and then every
 * connection to it has ended.  So while one connection stands, Redis has not gone back.  What was
 * read while the connection stood, Redis cannot lose any more once that connection has answered a
 * command that was sent long enough after.
 *
 * A failover loses what no replica had.  With --ack-replicas replicas must also have what the
 * connection has written long enough after, and so all that was written before it.
 *
 * This is for one server that has all the data.  The writer tells since when its connection stands.
 * A reader that has read something that must not be lost asks, and says until when Redis must not
 * have gone back.
 */
#ifndef STORAGE_CORE_STANDING_H
#define STORAGE_CORE_STANDING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Times are CLOCK_MONOTONIC, ms. */
struct standing {
    _Atomic int64_t since_ms;  /* INT64_MAX: there is no connection */
    _Atomic int64_t until_ms;  /* when the newest command that was answered was sent */
    _Atomic int64_t acked_ms;  /* when the newest write that enough replicas have was sent */
    _Atomic int64_t wanted_ms; /* the latest instant that a thread wants to know about */
    bool needs_acks;

    /* Called by standing_want(), on its thread; set before the first call.  NULL: not called. */
    void (*on_want)(void *data);
    void *on_want_data;
};

void standing_init(struct standing *standing, bool needs_acks);

/* The writer notes that a connection stands from @now_ms on; that the connection has answered what
 * was sent at @sent_ms; that enough replicas have the write that was sent at @sent_ms; and that the
 * connection has ended. */
void standing_begin(struct standing *standing, int64_t now_ms);
void standing_answered(struct standing *standing, int64_t sent_ms);
void standing_acked(struct standing *standing, int64_t sent_ms);
void standing_end(struct standing *standing);

/* The latest instant that a thread wants to know about, if it is not known yet; INT64_MIN: none. */
int64_t standing_wanted_ms(struct standing *standing);

/* Note that a thread wants to know whether Redis has gone back until @at_ms. */
void standing_want(struct standing *standing, int64_t at_ms);

/* Has Redis certainly not gone back within [from_ms, to_ms]? */
bool standing_held(struct standing *standing, int64_t from_ms, int64_t to_ms);

/* Can standing_held() still become true?  False: it is true, or the connection came later than
 * @from_ms. */
bool standing_awaits(struct standing *standing, int64_t from_ms, int64_t to_ms);

#endif
