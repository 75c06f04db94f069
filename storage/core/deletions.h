/* deletions.h - which sites are being deleted, as this process knows.
 *
 * Layer: storage.  Thread-safe.
 *
 * Events of such a site are refused, and so are items for its filters.  The list is as old as the
 * last look: the rollup's thread looks every second, and so does a reader while events come.  A
 * process that does not know of a deletion yet may acknowledge events of the site.  No fold counts
 * these events (schema/tombstones.h), so they are deleted with the site.
 *
 * What arrives after a deletion is counted, also where Redis's clock was set back behind the
 * deletion's instant meanwhile: until the clock is there again, entries count as arrived at that
 * instant.
 */
#ifndef STORAGE_CORE_DELETIONS_H
#define STORAGE_CORE_DELETIONS_H

#include <pthread.h>
#include <stdatomic.h>

#include "storage/base/buffer.h"
#include "storage/base/compiler.h"
#include "storage/job/event.h"
#include "storage/redis/reply.h"

#define DELETIONS_MAX     64 /* deletions that can be under way, of sites and pages together */
#define DELETIONS_LOOK_MS 1000

struct deleting_site {
    char name[EVENT_SITE_MAX];
    size_t n;
    int64_t until_ms; /* the site counts again from then on, by Redis's clock; 0: not known yet */
};

struct deletions {
    pthread_mutex_t lock; /* guards sites and last_ms */
    struct deleting_site sites[DELETIONS_MAX];
    _Atomic size_t n;
    int64_t last_ms;           /* the latest instant in the list at the last look */
    _Atomic int64_t over_ms;   /* the latest instant of a deletion that is over; 0: none is known */
    _Atomic int64_t looked_ms; /* CLOCK_MONOTONIC: when the last look became due */
};

void deletions_init(struct deletions *deletions);
void deletions_release(struct deletions *deletions);

/* Learn which deletions are under way from @reply, the answer to HGETALL t:{0}:deletions at
 * @redis_ms by Redis's clock. */
void deletions_learn(struct deletions *deletions, const struct reply *reply, int64_t redis_ms);

/* Learn that a deletion with the instant @over_ms, by Redis's clock, is over. */
void deletions_learn_over(struct deletions *deletions, int64_t over_ms);

/* Append the command that asks for the latest instant of a deletion that is over: a number, or nil.
 * @tag: of partition 0. */
void deletions_ask_over(struct buffer *out, const char *tag);

/* The time of arrival, by Redis's clock, of an entry that comes at @redis_ms: @redis_ms, or the
 * instant of the latest deletion that is over. */
int64_t deletions_arrival_ms(const struct deletions *deletions, int64_t redis_ms) MUST_CHECK;

/* Is it time for a look, at @now_ms (CLOCK_MONOTONIC)?  One caller gets true, and must look. */
bool deletions_look_due(struct deletions *deletions, int64_t now_ms) MUST_CHECK;

/* Is @site, or the site of one of @n events, being deleted for what comes at @redis_ms (Redis's
 * clock)? */
bool deletions_refuse_site(
    struct deletions *deletions, struct slice site, int64_t redis_ms) MUST_CHECK;
bool deletions_refuse(
    struct deletions *deletions, const struct event *events, size_t n, int64_t redis_ms) MUST_CHECK;

#endif
