#include "service/http/reaper.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "storage/base/clock.h"
#include "storage/base/cond.h"

/* TCP_CLOSE_WAIT of <netinet/tcp.h>.  That header cannot be included beside <linux/tcp.h>, and only
 * the tcp_info of <linux/tcp.h> counts bytes. */
#define STATE_CLOSE_WAIT 8

#define LINGER_MS      2000
#define LINGER_LOOK_MS 20
#define LINGER_MAX     256 /* sockets; more are closed at once */

/* A connection that has waited for its client for less than that is not ended to make room.  A
 * client sends its first request at once. */
#define SPARE_MS     1000
#define SPARE_NEW_MS 250

struct lingerer {
    int fd;
    int64_t until_ms;
};

struct reaper {
    int64_t head_ms, idle_ms, look_ms;
    reaper_farewell *farewell;
    pthread_t thread;
    pthread_mutex_t mu;
    pthread_cond_t wake; /* CLOCK_MONOTONIC */

    /* Guarded by mu. */
    bool stopping;
    bool sleeping; /* the thread waits without a time limit */
    struct reaper_entry *first;
    uint64_t n, late, shed;
    struct lingerer lingerers[LINGER_MAX];
    unsigned n_lingerers;
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* What the kernel knows of a connection. */
struct inbound {
    uint64_t bytes; /* received so far, without the FIN; REAPER_UNKNOWN if not told */
    bool ended;     /* the peer sends no more */
};

static struct inbound inbound_of(int fd)
{
    struct tcp_info info;
    socklen_t n = sizeof(info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) != 0 ||
        n < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof(info.tcpi_bytes_received)) {
        return (struct inbound){.bytes = REAPER_UNKNOWN};
    }
    bool ended = info.tcpi_state == STATE_CLOSE_WAIT;
    /* The kernel counts a FIN as one byte. */
    return (struct inbound){info.tcpi_bytes_received - ended, ended};
}

uint64_t reaper_received(const struct reaper_entry *entry)
{
    return inbound_of(entry->fd).bytes;
}

/* Are bytes of a next head there?  A chunked body leaves its framing uncounted, so the beginning of
 * the idle time behind such a body is not known.  Then the first look takes the bytes that are
 * there as the beginning. */
static bool head_under_way(struct reaper_entry *entry, uint64_t received, int64_t idle_from_ms)
{
    if (received == REAPER_UNKNOWN) {
        return false;
    }
    uint64_t consumed = atomic_load_explicit(&entry->consumed, memory_order_relaxed);
    if (consumed != REAPER_UNKNOWN) {
        return received != consumed;
    }
    if (entry->seen_idle_from_ms != idle_from_ms) {
        entry->seen_idle_from_ms = idle_from_ms;
        entry->base = received;
    }
    return received != entry->base;
}

/* When an idle connection is due; *ret_late: its end counts as a late request.  The connection's
 * thread may move on meanwhile and leave a stale mark.  That does no harm: the connection is looked
 * at again before it is ended. */
static int64_t idle_due_ms(
    const struct reaper *reaper, struct reaper_entry *entry, int64_t now_ms, bool *ret_late)
{
    int64_t idle_from = atomic_load_explicit(&entry->idle_from_ms, memory_order_relaxed);
    struct inbound inbound = inbound_of(entry->fd);
    int64_t mark = 0;
    *ret_late = head_under_way(entry, inbound.bytes, idle_from);
    if (*ret_late || inbound.ended) {
        mark = atomic_load_explicit(&entry->head_from_ms, memory_order_relaxed);
        if (mark < idle_from) { /* begun after the last look: take the middle of that time */
            mark = now_ms - least((now_ms - idle_from) / 2, reaper->look_ms / 2);
        }
    }
    atomic_store_explicit(&entry->head_from_ms, mark, memory_order_relaxed);
    if (mark == 0) {
        return idle_from + reaper->idle_ms;
    }
    if (!inbound.ended) {
        return mark + reaper->head_ms;
    }
    /* The library (0.9.75) misses an end that comes together with data.  If the data is a request,
     * the library's thread begins that request long before the next look. */
    *ret_late = false;
    return mark + reaper->look_ms;
}

/* End a connection.  @due is entry->due_ms as it was read; @late: a request was coming; @for_room:
 * others have no room.  False: the connection's thread has moved on meanwhile, and nothing was
 * done. */
static bool end(
    struct reaper *reaper, struct reaper_entry *entry, int64_t due, bool late, bool for_room)
{
    if (!atomic_compare_exchange_strong(&entry->due_ms, &due, REAPER_ENDED)) {
        return false;
    }
    if (late && atomic_load_explicit(&entry->answered_ms, memory_order_relaxed) == 0) {
        reaper->farewell(entry, for_room);
    }
    (void)shutdown(entry->fd, SHUT_RDWR); /* this fails if the peer was faster */
    return true;
}

/* Look at every connection.  Returns when to look again. */
static int64_t look(struct reaper *reaper, int64_t now_ms)
{
    int64_t next = now_ms + reaper->look_ms;
    for (struct reaper_entry *entry = reaper->first; entry != NULL; entry = entry->next) {
        bool late = true;
        int64_t state = atomic_load_explicit(&entry->due_ms, memory_order_acquire);
        if (state == REAPER_ENDED) {
            continue; /* the library closes the connection soon */
        }
        int64_t due = state != 0 ? state : idle_due_ms(reaper, entry, now_ms, &late);
        if (due > now_ms) {
            next = least(next, due);
        } else if (end(reaper, entry, state, late, false)) { /* false: look again next time */
            reaper->late += late;
        }
    }
    return next;
}

/* Read what has come and throw it away.  False once the socket is of no more use. */
static bool drain(const struct lingerer *lingerer, int64_t now_ms)
{
    char sink[16384];
    ssize_t n = 1;
    for (int i = 0; i < 64 && n > 0; i++) {
        n = recv(lingerer->fd, sink, sizeof(sink), MSG_DONTWAIT);
    }
    bool open = n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
    return open && now_ms < lingerer->until_ms;
}

static void drain_all(struct reaper *reaper, int64_t now_ms)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < reaper->n_lingerers; i++) {
        if (!reaper->stopping && drain(&reaper->lingerers[i], now_ms)) {
            reaper->lingerers[kept++] = reaper->lingerers[i];
        } else {
            (void)close(reaper->lingerers[i].fd);
        }
    }
    reaper->n_lingerers = kept;
}

static void *run(void *data)
{
    struct reaper *reaper = data;
    (void)pthread_mutex_lock(&reaper->mu);
    while (!reaper->stopping) {
        if (reaper->first == NULL && reaper->n_lingerers == 0) {
            reaper->sleeping = true;
            (void)pthread_cond_wait(&reaper->wake, &reaper->mu);
            reaper->sleeping = false;
            continue;
        }
        int64_t now = monotonic_ms();
        drain_all(reaper, now);
        int64_t next = look(reaper, now);
        if (reaper->n_lingerers > 0) {
            next = least(next, now + LINGER_LOOK_MS);
        }
        cond_wait_until_ms(&reaper->wake, &reaper->mu, next);
    }
    drain_all(reaper, 0);
    (void)pthread_mutex_unlock(&reaper->mu);
    return NULL;
}

static void reaper_free(struct reaper *reaper)
{
    (void)pthread_cond_destroy(&reaper->wake);
    (void)pthread_mutex_destroy(&reaper->mu);
    free(reaper);
}

struct reaper *reaper_start(int64_t head_ms, int64_t idle_ms, reaper_farewell *farewell)
{
    struct reaper *reaper = calloc(1, sizeof(*reaper));
    if (reaper == NULL) {
        return NULL;
    }
    reaper->head_ms = head_ms;
    reaper->idle_ms = idle_ms;
    reaper->farewell = farewell;
    reaper->look_ms = least(head_ms / 8 + 1, 1000);
    mutex_init(&reaper->mu);
    cond_init(&reaper->wake);
    if (pthread_create(&reaper->thread, NULL, run, reaper) != 0) {
        reaper_free(reaper);
        return NULL;
    }
    return reaper;
}

void reaper_stop(struct reaper *reaper)
{
    if (reaper == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&reaper->mu);
    assert(reaper->first == NULL);
    reaper->stopping = true;
    (void)pthread_cond_signal(&reaper->wake);
    (void)pthread_mutex_unlock(&reaper->mu);
    (void)pthread_join(reaper->thread, NULL);
    reaper_free(reaper);
}

void reaper_watch(struct reaper *reaper, struct reaper_entry *entry, int fd, int64_t now_ms)
{
    *entry = (struct reaper_entry){.fd = fd};
    reaper_idle(entry, now_ms, 0);
    (void)pthread_mutex_lock(&reaper->mu);
    entry->next = reaper->first;
    if (reaper->first != NULL) {
        reaper->first->prev = entry;
    }
    reaper->first = entry;
    reaper->n++;
    if (reaper->sleeping) {
        (void)pthread_cond_signal(&reaper->wake);
    }
    (void)pthread_mutex_unlock(&reaper->mu);
}

void reaper_forget(struct reaper *reaper, struct reaper_entry *entry)
{
    (void)pthread_mutex_lock(&reaper->mu);
    if (entry->prev != NULL) {
        entry->prev->next = entry->next;
    } else {
        reaper->first = entry->next;
    }
    if (entry->next != NULL) {
        entry->next->prev = entry->prev;
    }
    reaper->n--;
    (void)pthread_mutex_unlock(&reaper->mu);
}

void reaper_linger(struct reaper *reaper, int fd)
{
    (void)pthread_mutex_lock(&reaper->mu);
    bool taken = reaper->n_lingerers < LINGER_MAX && !reaper->stopping;
    if (taken) {
        int64_t until = monotonic_ms() + LINGER_MS;
        reaper->lingerers[reaper->n_lingerers++] = (struct lingerer){fd, until};
        (void)pthread_cond_signal(&reaper->wake);
    }
    (void)pthread_mutex_unlock(&reaper->mu);
    if (!taken) {
        (void)close(fd);
    }
}

static bool all_idle(const struct reaper *reaper)
{
    for (const struct reaper_entry *entry = reaper->first; entry != NULL; entry = entry->next) {
        if (atomic_load_explicit(&entry->due_ms, memory_order_acquire) != 0) {
            return false;
        }
    }
    return true;
}

bool reaper_wait_idle(struct reaper *reaper, int64_t until_ms)
{
    /* Only a server that stops asks, so a look every 2 ms is enough. */
    for (;;) {
        (void)pthread_mutex_lock(&reaper->mu);
        bool idle = all_idle(reaper);
        (void)pthread_mutex_unlock(&reaper->mu);
        if (idle || monotonic_ms() >= until_ms) {
            return idle;
        }
        (void)nanosleep(&(struct timespec){0, 2000000}, NULL);
    }
}

static bool is_new(const struct reaper_entry *entry)
{
    return atomic_load_explicit(&entry->consumed, memory_order_relaxed) == 0;
}

/* For how many ms the connection has waited for its client; 0: the connection is to be spared.
 * @due is entry->due_ms as it was read. */
static int64_t waited_ms(
    const struct reaper *reaper, const struct reaper_entry *entry, int64_t due, int64_t now_ms)
{
    int64_t answered = atomic_load_explicit(&entry->answered_ms, memory_order_relaxed);
    int64_t head = atomic_load_explicit(&entry->head_from_ms, memory_order_relaxed);
    int64_t from, spare = SPARE_MS;
    if (due == REAPER_ENDED || due == REAPER_NEVER) {
        return 0;
    }
    if (due == 0) {
        from = atomic_load_explicit(&entry->idle_from_ms, memory_order_relaxed);
        spare = is_new(entry) ? SPARE_NEW_MS : SPARE_MS;
        from = head > from && !is_new(entry) ? head : from;
    } else {
        from = answered != 0 ? answered : due - reaper->head_ms;
    }
    return now_ms - from >= spare ? now_ms - from : 0;
}

/* Has the client sent something that the connection's own thread has not read yet?  Then it is not
 * the client that is slow. */
static bool has_unread(const struct reaper_entry *entry)
{
    int n = 0;
    return atomic_load_explicit(&entry->answered_ms, memory_order_relaxed) == 0 &&
           ioctl(entry->fd, FIONREAD, &n) == 0 && n > 0;
}

/* End a connection that has waited for long.  False: the connection stays. */
static bool shed(struct reaper *reaper, struct reaper_entry *entry, int64_t due, int64_t now_ms)
{
    bool late = true;
    if (due == 0) {
        (void)idle_due_ms(reaper, entry, now_ms, &late);
        int64_t head = atomic_load_explicit(&entry->head_from_ms, memory_order_relaxed);
        if (late && !is_new(entry) && now_ms - head < SPARE_MS) {
            return false; /* a next request has begun just now */
        }
    }
    return !has_unread(entry) && end(reaper, entry, due, late, true);
}

void reaper_make_room(struct reaper *reaper)
{
    int64_t longest_ms = 0;
    int64_t now_ms = monotonic_ms();
    (void)pthread_mutex_lock(&reaper->mu);
    uint64_t most = reaper->n / 16 + 1;
    for (struct reaper_entry *entry = reaper->first; entry != NULL; entry = entry->next) {
        int64_t due = atomic_load_explicit(&entry->due_ms, memory_order_acquire);
        int64_t ms = waited_ms(reaper, entry, due, now_ms);
        longest_ms = ms > longest_ms ? ms : longest_ms;
        most -= due == REAPER_ENDED && most > 0; /* the place of this one is free in a moment */
    }
    for (struct reaper_entry *entry = reaper->first; longest_ms > 0 && most > 0 && entry != NULL;
         entry = entry->next) {
        int64_t due = atomic_load_explicit(&entry->due_ms, memory_order_acquire);
        int64_t ms = waited_ms(reaper, entry, due, now_ms);
        if (ms > 0 && ms >= longest_ms / 2 && shed(reaper, entry, due, now_ms)) {
            reaper->shed++;
            most--;
        }
    }
    (void)pthread_mutex_unlock(&reaper->mu);
}

struct reaper_counts reaper_count(struct reaper *reaper)
{
    (void)pthread_mutex_lock(&reaper->mu);
    struct reaper_counts counts = {reaper->n, reaper->late, reaper->shed};
    (void)pthread_mutex_unlock(&reaper->mu);
    return counts;
}
