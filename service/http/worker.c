/* http/worker.c - a thread that serves connections, and what wakes it.
 *
 * The library has an epoll of its connections, but no thread: this file runs it.  So a request
 * whose job is lent to storage need not be suspended.  It stays among those that the library calls
 * for in each run, and costs a look at one flag.  To suspend and resume it would cost the library
 * (0.9.75) two locks, two epoll_ctl(), a write to a descriptor and a vain recv().
 *
 * A run reads all requests that have come, and submits their jobs.  Behind the run storage's thread
 * is woken, once for all of them.  The jobs come back in bursts, too, and the first one of a burst
 * wakes this thread, if it sleeps.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "service/http/server_private.h"

/* Bytes that the library has for a connection: a head of 12 KiB with HTTP_FIELDS_MAX fields, a
 * record of 64 bytes for each field, and the answer's head.  The library clears this memory after
 * every request, so each KiB costs time. */
#define CONNECTION_MEMORY ((size_t)20 * 1024)

/* While jobs are lent, the library does not tell whether it has something else to do at once.  The
 * library has something to do after a run in which a request went on.  Anything else, such as a
 * head that takes two reads, waits LOOK_MS at most. */
#define LOOK_MS 10

/* A request that fills its memory with a line of its framing is "ready" to the library in every
 * run, and none takes the request further.  After so many runs in a row in which no request went
 * on, the thread waits LOOK_MS.  What comes from the network wakes the thread earlier. */
#define VAIN_RUNS_MAX 8

struct arrival {
    struct arrival *next;
    int fd;
    socklen_t peer_n;
    struct sockaddr_storage peer;
};

/* ---- news ---- */

void worker_wake(struct worker *worker)
{
    (void)atomic_fetch_add(&worker->news, 1);
    if (atomic_load(&worker->sleeps) && atomic_exchange(&worker->sleeps, false)) {
        (void)eventfd_write(worker->wake_fd, 1);
    }
}

void worker_take(struct worker *worker, int fd, const struct sockaddr *peer, socklen_t peer_n)
{
    struct arrival *arrival = malloc(sizeof(*arrival));
    if (arrival == NULL || peer_n > sizeof(arrival->peer)) {
        free(arrival);
        (void)close(fd);
        worker_left(worker);
        return;
    }
    arrival->fd = fd;
    arrival->peer_n = peer_n;
    memcpy(&arrival->peer, peer, peer_n);
    arrival->next = atomic_load(&worker->arrivals);
    while (!atomic_compare_exchange_weak(&worker->arrivals, &arrival->next, arrival)) {
    }
    worker_wake(worker);
}

static void admit_arrivals(struct worker *worker)
{
    struct arrival *arrival = atomic_exchange(&worker->arrivals, NULL);
    while (arrival != NULL) {
        struct arrival *next = arrival->next;
        unsigned n_closed = worker->n_closed;
        if (MHD_add_connection(worker->daemon, arrival->fd, (struct sockaddr *)&arrival->peer,
                arrival->peer_n) != MHD_YES && /* the library has closed fd */
            worker->n_closed == n_closed) {    /* else http_on_connection() has told of it */
            worker_left(worker);
        }
        free(arrival);
        arrival = next;
    }
}

static void finish_orphans(struct worker *worker)
{
    struct connection *orphan = atomic_exchange(&worker->orphans, NULL);
    while (orphan != NULL) {
        struct connection *next = orphan->next_orphan;
        connection_finish_orphan(orphan);
        orphan = next;
    }
}

/* ---- the thread ---- */

/* How long the thread may sleep, ms; -1: until it is woken. */
static int patience_ms(const struct worker *worker)
{
    MHD_UNSIGNED_LONG_LONG ms = 0;
    if (worker->waiting > 0) {
        return LOOK_MS;
    }
    if (MHD_get_timeout(worker->daemon, &ms) != MHD_YES) {
        return -1;
    }
    int least = worker->vain_runs > VAIN_RUNS_MAX ? LOOK_MS : 0;
    return ms < 1000 ? (ms > (unsigned)least ? (int)ms : least) : 1000;
}

/* Sleep until there is something to do.  News that come after this function has looked keep the
 * thread awake: worker_wake() counts first and looks at `sleeps` then, this function the other way
 * round. */
static void worker_sleep(struct worker *worker)
{
    struct pollfd fds[2] = {
        {.fd = worker->wake_fd, .events = POLLIN}, {.fd = worker->epoll_fd, .events = POLLIN}};
    atomic_store(&worker->sleeps, true);
    if (atomic_load(&worker->news) == worker->seen_news) {
        (void)poll(fds, 2, patience_ms(worker));
    }
    atomic_store(&worker->sleeps, false);
    worker->seen_news = atomic_load(&worker->news);
    if ((fds[0].revents & POLLIN) != 0) {
        eventfd_t ignored;
        (void)eventfd_read(worker->wake_fd, &ignored);
    }
}

/* Tell storage to begin with the jobs that were submitted. */
static void flush_jobs(struct worker *worker)
{
    const struct http_server_config *config = &worker->server->config;
    if (worker->submitted && config->flush != NULL) {
        config->flush(config->storage);
    }
    worker->submitted = false;
}

static void *worker_main(void *data)
{
    struct worker *worker = data;
    while (!atomic_load(&worker->stop)) {
        worker_sleep(worker);
        admit_arrivals(worker);
        worker->vain_runs++;
        do {
            worker->moved = false;
            (void)MHD_run(worker->daemon);
            flush_jobs(worker);
            worker->vain_runs = worker->moved ? 0 : worker->vain_runs;
        } while (worker->moved);
        finish_orphans(worker);
        flush_jobs(worker);
    }
    return NULL;
}

/* ---- life ---- */

static struct MHD_Daemon *start_daemon(struct worker *worker)
{
    struct http_server *server = worker->server;
    return MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL,
        http_on_request, server, MHD_OPTION_CONNECTION_LIMIT, server->config.max_connections,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY, MHD_OPTION_NOTIFY_CONNECTION,
        http_on_connection, worker, MHD_OPTION_NOTIFY_COMPLETED, http_on_completed, server,
        MHD_OPTION_URI_LOG_CALLBACK, http_on_target, server, MHD_OPTION_END);
}

bool worker_start(struct http_server *server, struct worker *worker)
{
    worker->server = server;
    worker->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    worker->daemon = start_daemon(worker);
    if (worker->wake_fd < 0 || worker->daemon == NULL) {
        return false;
    }
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(worker->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (info == NULL) {
        return false;
    }
    worker->epoll_fd = info->epoll_fd;
    worker->running = pthread_create(&worker->thread, NULL, worker_main, worker) == 0;
    return worker->running;
}

void worker_stop(struct worker *worker)
{
    atomic_store(&worker->stop, true);
    if (worker->running) {
        worker_wake(worker);
        (void)pthread_join(worker->thread, NULL);
        admit_arrivals(worker); /* these are closed with the others */
        finish_orphans(worker);
    }
    if (worker->daemon != NULL) {
        MHD_stop_daemon(worker->daemon);
    }
    if (worker->wake_fd >= 0) {
        (void)close(worker->wake_fd);
    }
}

void worker_left(struct worker *worker)
{
    (void)atomic_fetch_sub(&worker->open, 1);
    acceptor_left(&worker->server->acceptor);
}
