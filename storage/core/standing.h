/* standing.h - since when, and until when, Redis is known not to have gone back.
 *
 * Layer: storage.  Thread-safe.
 *
 * A Redis that crashes may come back with an earlier state (durability.h), and then every
 * connection to it has ended.  So while one connection stands, Redis has not gone back; and what
 * was so when the connection stood, it cannot lose any more once that connection has answered
 * something that was sent long enough after.
 *
 * A failover takes what no replica had.  With --ack-replicas replicas must also have what the
 * connection has written long enough after, and so all that was written before it.
 *
 * The writer says how long its connection stands.  Whoever has read something that must not be lost
 * asks, and says until when it wants to know.  (One server has all the data here.)
 */
#ifndef STORAGE_CORE_STANDING_H
#define STORAGE_CORE_STANDING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Times are CLOCK_MONOTONIC, ms. */
struct standing {
    _Atomic int64_t since_ms;  /* INT64_MAX: there is no connection */
    _Atomic int64_t until_ms;  /* the newest command that was answered was sent then */
    _Atomic int64_t acked_ms;  /* the newest write that enough replicas have was sent then */
    _Atomic int64_t wanted_ms; /* until when somebody wants to know, at most */
    bool needs_acks;

    /* Called when somebody wants to know; set before that.  NULL: nobody. */
    void (*on_want)(void *data);
    void *on_want_data;
};

void standing_init(struct standing *standing, bool needs_acks);

/* The writer's: a connection stood at @now_ms; it has answered what was sent at @sent_ms; enough
 * replicas have the write that was sent at @sent_ms; the connection ended. */
void standing_begin(struct standing *standing, int64_t now_ms);
void standing_answered(struct standing *standing, int64_t sent_ms);
void standing_acked(struct standing *standing, int64_t sent_ms);
void standing_end(struct standing *standing);

/* Until when somebody wants to know what is not known yet; INT64_MIN: nobody. */
int64_t standing_wanted_ms(struct standing *standing);

/* Somebody wants to know that nothing went back until @at_ms. */
void standing_want(struct standing *standing, int64_t at_ms);

/* Has Redis certainly not gone back within [from_ms, to_ms]? */
bool standing_held(struct standing *standing, int64_t from_ms, int64_t to_ms);

/* Can that still be found out?  False: it is known, or the connection came later than @from_ms. */
bool standing_awaits(struct standing *standing, int64_t from_ms, int64_t to_ms);

#endif
