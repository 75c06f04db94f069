/* period_secrets.h - the secrets that addresses are hashed with where visitors rotate.
 *
 * Layer: storage.  Thread-safe.
 *
 * Each rotation period (job/config.h) has a random secret of its own.  Redis keeps the secret, so
 * that all processes hash with the same one, and throws it away 48 h after the period:
 *
 *     made         an hour ahead of the period, by the first process that counts an event then;
 *                  or when an event of the period needs the secret
 *     thrown away  48 h after the end of the period, by Redis and by each process
 *     late         needed after that, as for an old access log: a new secret is made, for 48 h
 *
 * A visitor of a late period may have been counted before, under the secret that is gone.  So the
 * periods that were late are remembered, for ever, and answers about them say `spans_rotation`.
 *
 * The writer prepares a Redis that may have lost its data.  Then all secrets of this process are in
 * doubt: each is put back if Redis has none, before it is used again.  If Redis has another one,
 * that one is taken.
 */
#ifndef STORAGE_CORE_PERIOD_SECRETS_H
#define STORAGE_CORE_PERIOD_SECRETS_H

#include <pthread.h>

#include "storage/base/compiler.h"
#include "storage/job/event.h"
#include "storage/schema/identity.h"

#define PERIOD_SECRET_LIFE_S  (48 * 3600)
#define PERIOD_SECRET_AHEAD_S 3600

struct period_secrets {
    pthread_mutex_t lock; /* guards all below */
    struct held_secret *held;
    size_t n, capacity;
    int64_t
        gone_ms; /* when the next secret is to be thrown away, Redis's clock; INT64_MAX: never */
    int64_t ahead_ms; /* when to look for the next period's secret again, Redis's clock */
    int64_t *late;    /* beginnings of periods that were late; owned, sorted */
    size_t n_late;
};

void period_secrets_init(struct period_secrets *secrets);
void period_secrets_release(struct period_secrets *secrets);

/* The secrets that the addresses of some events need. */
struct period_list {
    struct period_secret *known; /* by start_s; owned */
    size_t n_known;
    int64_t *missing; /* sorted; owned */
    size_t n_missing;
};

/* Find the secrets that the addresses of @n events need; with ROTATE_NEVER they need none.  @now_ms
 * is Redis's clock.  False: out of memory.  The caller releases @ret in either case. */
bool period_secrets_find(struct period_secrets *secrets, enum rotation rotation, int64_t now_ms,
    const struct event *events, size_t n, struct period_list *ret) MUST_CHECK;
void period_list_release(struct period_list *list);

/* Is the secret of the next period to be made now?  True at most every 10 s; then *ret_start_s is
 * the period's beginning. */
bool period_secrets_ahead(struct period_secrets *secrets, enum rotation rotation, int64_t now_ms,
    int64_t *ret_start_s) MUST_CHECK;

/* What this process proposes as the secret of a period: the one that it has, or a new one. */
void period_secrets_propose(struct period_secrets *secrets, int64_t start_s, struct secret *ret);

/* Remember that Redis has @secret for a period until @gone_ms of its clock.  False: out of memory.
 */
bool period_secrets_learn(struct period_secrets *secrets, int64_t start_s,
    const struct secret *secret, int64_t gone_ms) MUST_CHECK;

/* Doubt all secrets, because Redis may have lost them: none is used before it was learnt again. */
void period_secrets_doubt(struct period_secrets *secrets);

/* Throw away the secrets whose time is over at @now_ms by Redis's clock. */
void period_secrets_sweep(struct period_secrets *secrets, int64_t now_ms);

/* The instant, UTC seconds, from which on the secret of the period that begins at @start_s is late.
 */
static inline int64_t period_late_s(enum rotation rotation, int64_t start_s)
{
    return rotation_end_s(rotation, start_s) + PERIOD_SECRET_LIFE_S;
}

/* Remember that these @n periods, and no others, were late; @starts are in any order, and copied.
 * False: out of memory. */
bool period_secrets_set_late(
    struct period_secrets *secrets, const int64_t *starts, size_t n) MUST_CHECK;

/* Was the period that begins at @start_s late? */
bool period_secrets_is_late(struct period_secrets *secrets, int64_t start_s);

#endif
