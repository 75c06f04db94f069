/* reaper.h - end connections whose time is over.
 *
 * Layer: service.  Knows sockets and one thread of its own; no HTTP library.
 *
 * The HTTP library measures silence only.  So a client that sends a byte now and then could hold a
 * connection for ever.  The reaper holds each connection to absolute times:
 *
 *  - A request in progress has an instant by which it must have moved on (reaper_busy).
 *  - Between requests a connection may be silent for idle_ms.
 *  - The head of the next request may take head_ms.  The library does not tell when a head begins,
 *    but the kernel counts the bytes received (TCP_INFO).  When these are more than the requests so
 *    far account for, a head is under way.
 *
 * Where there is no room for more connections the reaper ends some sooner (reaper_make_room).
 *
 * The reaper ends a connection with shutdown() on its socket.  The library's thread then sees the
 * end of the stream and cleans up as usual.  If a request was still coming, its owner may send a
 * last word before that (reaper_farewell).
 *
 * The reaper's thread sleeps as long as there is no connection.  With connections it looks at them
 * every eighth of head_ms, at least once a second, and at the instant when the first request is
 * due.
 *
 * The reaper also lingers (RFC 9112 section 9.6).  To close a socket with unread input resets the
 * connection, and the reset may overtake the answer.  So input is read and thrown away for a
 * moment.
 *
 * Thread safety: reaper_busy(), reaper_answer() and reaper_idle() are for the one thread that
 * serves the connection, and take no lock.  All others may be called from any thread.
 */
#ifndef SERVICE_HTTP_REAPER_H
#define SERVICE_HTTP_REAPER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "storage/base/compiler.h"

struct reaper;

#define REAPER_NEVER   INT64_MAX
#define REAPER_ENDED   (-1)
#define REAPER_UNKNOWN UINT64_MAX

/* One connection; embedded in the caller's struct.  All times are ms of CLOCK_MONOTONIC. */
struct reaper_entry {
    _Atomic int64_t due_ms;       /* 0: idle; REAPER_ENDED: shut down; else see reaper_busy() */
    _Atomic int64_t answered_ms;  /* when the answer began; 0: not yet; written before due_ms */
    _Atomic int64_t idle_from_ms; /* start of the idle time; written before due_ms becomes 0 */
    _Atomic uint64_t consumed;    /* bytes of requests, or REAPER_UNKNOWN; written before due_ms */
    _Atomic int64_t head_from_ms; /* a next head, or the peer's end, was noticed then; 0: not yet */

    /* Private to the reaper, guarded by its lock. */
    int fd;                    /* the caller's */
    int64_t seen_idle_from_ms; /* the idle time that `base` belongs to */
    uint64_t base;             /* bytes when the idle time began, where consumed is unknown */
    struct reaper_entry *prev, *next;
};

/* Send the last word to the client of @entry, whose request has not come whole in time, or, with
 * @for_room, has come slowly where others had no room.  The socket is shut down afterwards, and
 * nothing else is sent on it then or later.  Called under the reaper's lock, on its thread or in
 * reaper_make_room(), so the function must not wait. */
typedef void reaper_farewell(const struct reaper_entry *entry, bool for_room);

/* Start the thread.  NULL: out of memory or threads. */
struct reaper *reaper_start(int64_t head_ms, int64_t idle_ms, reaper_farewell *farewell) MUST_CHECK;

/* Stop and free.  No entry may be left.  Sockets that linger are closed.  NULL is fine. */
void reaper_stop(struct reaper *reaper);

/* Watch a new connection, which begins idle, until reaper_forget() is called.  @fd stays the
 * caller's, and must stay open until reaper_forget() has returned. */
void reaper_watch(struct reaper *reaper, struct reaper_entry *entry, int fd, int64_t now_ms);
void reaper_forget(struct reaper *reaper, struct reaper_entry *entry);

/* A request is in progress and must have moved on by @due_ms > 0, or REAPER_NEVER.  False: the
 * reaper has ended the connection, so give it up and send nothing. */
static inline bool reaper_busy(struct reaper_entry *entry, int64_t due_ms)
{
    int64_t was = atomic_load_explicit(&entry->due_ms, memory_order_relaxed);
    while (was != REAPER_ENDED && !atomic_compare_exchange_weak(&entry->due_ms, &was, due_ms)) {
    }
    return was != REAPER_ENDED;
}

/* The same, when the answer is on its way from @now_ms on. */
static inline bool reaper_answer(struct reaper_entry *entry, int64_t now_ms, int64_t due_ms)
{
    atomic_store_explicit(&entry->answered_ms, now_ms, memory_order_relaxed);
    return reaper_busy(entry, due_ms);
}

/* When the request began that is noticed at @now_ms: at that instant, or earlier if its head came
 * slowly. */
static inline int64_t reaper_began_ms(const struct reaper_entry *entry, int64_t now_ms)
{
    int64_t head = atomic_load_explicit(&entry->head_from_ms, memory_order_relaxed);
    int64_t idle = atomic_load_explicit(&entry->idle_from_ms, memory_order_relaxed);
    return head >= idle && head != 0 && head < now_ms ? head : now_ms;
}

/* The request is over.  @consumed is the bytes of all requests on this connection so far. */
static inline void reaper_idle(struct reaper_entry *entry, int64_t now_ms, uint64_t consumed)
{
    atomic_store_explicit(&entry->head_from_ms, 0, memory_order_relaxed);
    atomic_store_explicit(&entry->consumed, consumed, memory_order_relaxed);
    atomic_store_explicit(&entry->idle_from_ms, now_ms, memory_order_relaxed);
    atomic_store_explicit(&entry->answered_ms, 0, memory_order_relaxed);
    (void)reaper_busy(entry, 0);
}

/* Has the reaper ended the connection, with a farewell to its request? */
static inline bool reaper_dismissed(const struct reaper_entry *entry)
{
    return atomic_load(&entry->due_ms) == REAPER_ENDED &&
           atomic_load_explicit(&entry->answered_ms, memory_order_relaxed) == 0;
}

/* How many bytes the peer has sent so far; REAPER_UNKNOWN: the system does not tell. */
uint64_t reaper_received(const struct reaper_entry *entry) MUST_CHECK;

/* Take over @fd, whose sending side is shut down.  The reaper reads @fd empty until the peer
 * closes, at most for two seconds, and closes @fd. */
void reaper_linger(struct reaper *reaper, int fd);

/* Wait until no connection has a request in progress, at most until @until_ms.  True: none has. */
bool reaper_wait_idle(struct reaper *reaper, int64_t until_ms);

/* End the connections that have waited longest for their clients: those that are silent, or whose
 * request comes or answer goes slowly.  At most about a sixteenth of all is ended, together with
 * those that were ended before and have not left yet.  A connection is spared until it has waited
 * for a second, before its first request for a quarter of a second.  A connection is spared in any
 * case while bytes from its client are unread, or storage has its request. */
void reaper_make_room(struct reaper *reaper);

struct reaper_counts {
    uint64_t connections; /* connections that are watched now */
    uint64_t late;        /* requests and heads whose time was over */
    uint64_t shed;        /* connections that were ended to make room */
};

struct reaper_counts reaper_count(struct reaper *reaper);

#endif
