/* standing.h - from when until when Redis is known not to have gone back.
 *
 * Layer: storage.  Thread-safe.
 *
 * A Redis that crashes may come back with an earlier state (durability.h), and then every
 * connection to it has ended.  So while one connection stands, Redis has not gone back; and what
 * was so when the connection stood, it cannot lose any more once that connection has answered
 * something that was sent long enough after.
 *
 * The writer says how long its connection stands.  Whoever has read something that must not be lost
 * asks, and says until when it wants to know.
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
    _Atomic int64_t wanted_ms; /* until when somebody wants to know, at most */
};

void standing_init(struct standing *standing);

/* The writer's: a connection stood at @now_ms; it has answered what was sent at @sent_ms; it ended.
 */
void standing_begin(struct standing *standing, int64_t now_ms);
void standing_answered(struct standing *standing, int64_t sent_ms);
void standing_end(struct standing *standing);

/* Somebody wants to know that nothing went back until @at_ms. */
void standing_want(struct standing *standing, int64_t at_ms);

/* Has Redis certainly not gone back within [from_ms, to_ms]? */
bool standing_held(struct standing *standing, int64_t from_ms, int64_t to_ms);

/* Can that still be found out?  False: it is known, or the connection came later than @from_ms. */
bool standing_awaits(struct standing *standing, int64_t from_ms, int64_t to_ms);

#endif
