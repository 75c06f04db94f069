/* reaper.h - ends connections whose time is over.
 *
 * Layer: service.  Knows sockets and one thread of its own; no HTTP library.
 *
 * The HTTP library measures silence only, so a client that sends a byte now and then could hold a
 * connection for ever.  The reaper holds each connection to absolute times, with shutdown() on its
 * socket: the library's thread then sees the end of the stream and cleans up as ever.  If a request
 * was still coming, its owner may say a last word before (reaper_farewell).
 *  - A request in progress has an instant by which it must have moved on (reaper_busy).
 *  - Between requests a connection may be silent for idle_ms.  The library does not tell when a
 *    next head begins, but the kernel counts the bytes received (TCP_INFO): more than the requests
 * so far account for is a head under way, and that may take head_ms. Its thread sleeps as long as
 * there is no connection; with connections it looks every eighth of head_ms, at most every second,
 * and at the instant the first request is due.
 *
 * It also lingers (RFC 9112 section 9.6): closing a socket with unread input resets the connection,
 * and the reset may overtake the answer; so input is read and thrown away for a moment.
 *
 * Thread safety: reaper_busy, reaper_answer and reaper_idle are for the one thread that serves the
 * connection and take no lock; all others may be called from any thread.
 */
#ifndef SERVICE_HTTP_REAPER_H
#define SERVICE_HTTP_REAPER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct reaper;

#define REAPER_NEVER   INT64_MAX
#define REAPER_ENDED   (-1)
#define REAPER_UNKNOWN UINT64_MAX

/* One connection; embedded in the caller's.  All times: milliseconds of CLOCK_MONOTONIC. */
struct reaper_entry {
    _Atomic int64_t due_ms;       /* 0: idle; REAPER_ENDED: shut down; else when what goes on must
                                     be done */
    _Atomic bool answered;        /* the request in progress has been; written before due_ms */
    _Atomic int64_t idle_from_ms; /* start of the idle time, written before due_ms becomes 0 */
    _Atomic uint64_t consumed;    /* bytes of all requests so far, or REAPER_UNKNOWN; likewise */
    _Atomic int64_t
        head_from_ms; /* when a next head, or the peer's end, was first noticed; 0: not */

    /* Private to the reaper, guarded by its lock. */
    int fd;
    int64_t seen_idle_from_ms;
    uint64_t base; /* what the idle time began with, where consumed is unknown */
    struct reaper_entry *prev, *next;
};

/* Called before the socket of @entry is shut down because a request has not come whole in time: the
 * last word to its client.  On the reaper's thread, under its lock: it must not wait.  Nothing else
 * is sent on the socket at the time or later. */
typedef void reaper_farewell(const struct reaper_entry *entry);

/* NULL if memory or threads are out. */
struct reaper *reaper_start(int64_t head_ms, int64_t idle_ms, reaper_farewell *farewell)
    __attribute__((warn_unused_result));

/* Stop and free.  No entry may be left; sockets that linger are closed. */
void reaper_stop(struct reaper *reaper);

/* Watch a new connection; it begins idle.  @fd stays the caller's and must not be closed before
 * reaper_forget() has returned. */
void reaper_watch(struct reaper *reaper, struct reaper_entry *entry, int fd, int64_t now_ms);
void reaper_forget(struct reaper *reaper, struct reaper_entry *entry);

/* A request is in progress and must have moved on by @due_ms > 0, or REAPER_NEVER.  False if the
 * reaper has ended the connection: give it up, and send nothing. */
static inline bool reaper_busy(struct reaper_entry *entry, int64_t due_ms)
{
    int64_t was = atomic_load_explicit(&entry->due_ms, memory_order_relaxed);
    while (was != REAPER_ENDED && !atomic_compare_exchange_weak(&entry->due_ms, &was, due_ms)) {
    }
    return was != REAPER_ENDED;
}

/* The same for the time from now on, when an answer is on its way. */
static inline bool reaper_answer(struct reaper_entry *entry, int64_t due_ms)
{
    atomic_store_explicit(&entry->answered, true, memory_order_relaxed);
    return reaper_busy(entry, due_ms);
}

/* When the request that is now noticed began: @now_ms, or earlier if its head has been trickling
 * in. */
static inline int64_t reaper_began_ms(const struct reaper_entry *entry, int64_t now_ms)
{
    int64_t head = atomic_load_explicit(&entry->head_from_ms, memory_order_relaxed);
    int64_t idle = atomic_load_explicit(&entry->idle_from_ms, memory_order_relaxed);
    return head >= idle && head != 0 && head < now_ms ? head : now_ms;
}

/* The request is over.  @consumed: bytes of all requests on this connection so far. */
static inline void reaper_idle(struct reaper_entry *entry, int64_t now_ms, uint64_t consumed)
{
    atomic_store_explicit(&entry->head_from_ms, 0, memory_order_relaxed);
    atomic_store_explicit(&entry->consumed, consumed, memory_order_relaxed);
    atomic_store_explicit(&entry->idle_from_ms, now_ms, memory_order_relaxed);
    atomic_store_explicit(&entry->answered, false, memory_order_relaxed);
    (void)reaper_busy(entry, 0);
}

/* The reaper has ended the connection, and a farewell was what its request got. */
static inline bool reaper_dismissed(const struct reaper_entry *entry)
{
    return atomic_load(&entry->due_ms) == REAPER_ENDED &&
           !atomic_load_explicit(&entry->answered, memory_order_relaxed);
}

/* Take over @fd, whose sending side is shut down: read it empty until the peer closes, at most for
 * two seconds, then close it. */
void reaper_linger(struct reaper *reaper, int fd);

/* Wait until no connection has a request in progress, at most until @until_ms.  True if so. */
bool reaper_wait_idle(struct reaper *reaper, int64_t until_ms);

/* Connections watched now, and requests or heads that were ended because their time was over. */
void reaper_count(struct reaper *reaper, uint64_t *ret_connections, uint64_t *ret_late);

#endif
