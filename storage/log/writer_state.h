/* writer_state.h - the insides of a writer, and what its three files call in each other.
 *
 * Layer: storage, private to writer.c (what waits for the thread, and its life), loop.c (what the
 * thread does) and connection.c (its connection, and patience where there is none).
 *
 * Ownership: a job belongs to the queue until it is taken, then to the entry that it went into.
 * Thread safety: any thread may use what `lock` guards, under the lock, and the atomic members.
 * The rest belongs to the writer's thread, on which all functions here are called.
 */
#ifndef STORAGE_LOG_WRITER_STATE_H
#define STORAGE_LOG_WRITER_STATE_H

#include "storage/job/queue.h"
#include "storage/log/append.h"
#include "storage/session/session.h"

#define WRITER_RETRY_MIN_MS 10 /* the first pause between two attempts to connect */

struct writers_share;

struct writer {
    struct core *core;
    struct writers_share *share;
    _Atomic bool is_connected; /* see writer_is_connected(); the thread writes it */
    _Atomic int away;          /* an enum storage_err, see writer_away(); the thread writes it */
    pthread_t thread;
    int wake_fd;          /* an eventfd that wakes the thread */
    atomic_bool wake_due; /* writer_flush() must wake the thread */

    pthread_mutex_t lock; /* guards all up to the blank line */
    pthread_cond_t idle;  /* `busy` became false */
    struct job_queue queue;
    size_t shown_events; /* events of `queue` in the gauge of all writers */
    size_t wake_at;      /* the thread sleeps until so many events wait; SIZE_MAX: do not wake it */
    int64_t due_ms;      /* no job in `queue` is late before this instant; INT64_MAX: none waits */
    int64_t look_ms;     /* the thread looks for late jobs then at the latest, unless it is woken */
    bool busy;           /* jobs are waiting or under way */
    bool draining, stop;
    int64_t drain_deadline_ms;

    /* The thread's own.  All instants are CLOCK_MONOTONIC. */
    struct session session;
    struct appender appender;
    unsigned servers_changes; /* servers_changes() when the thread last tried to connect */
    bool output_left;         /* the socket did not take everything */
    bool lost;                /* the connection must be given up */
    int64_t connected_ms;     /* since when there is a connection */
    int64_t heard_ms;         /* the last reply, or the last time that no reply was awaited */
    int64_t hinted_ms;        /* when the topology was last told that no reply comes */
    int64_t disconnected_ms;  /* since when there is no connection; 0: there is one */
    int64_t next_connect_ms;  /* when the thread tries to connect again */
    int64_t retry_ms;         /* the pause behind the next attempt that fails */
    int64_t late_ms;          /* the next deadline of a request that waits */
};

/* ---- writer.c: what waits ---- */

/* Take the jobs of the next entry, of about @room events at most, out of the queue, if @min_events
 * wait.  NULL: fewer wait. */
struct storage_job *writer_take_jobs(struct writer *writer, size_t min_events, size_t room);

/* Answer the waiting jobs whose deadlines are over: nothing of them was sent.  Returns an instant
 * before which none of the others is late; INT64_MAX: none waits.  A request whose body came slowly
 * is late before others that wait in front of it. */
int64_t writer_fail_late(struct writer *writer, int64_t now_ms);

/* Answer all requests that wait for an entry with @err, except those that another writer takes. */
void writer_fail_waiting(struct writer *writer, enum storage_err err);

/* ---- connection.c ---- */

/* Try to connect, once; waits for Redis.  Requests whose deadlines are over are answered meanwhile.
 */
void writer_try_connect(struct writer *writer, int64_t now_ms);

/* Close the connection: what is under way goes again over the next one. */
void writer_disconnect(struct writer *writer, int64_t now_ms);

/* There is no connection.  If that has been so for too long, answer the requests that wait; new
 * ones are refused at once. */
void writer_lose_patience(struct writer *writer, int64_t now_ms);

/* There is a connection.  If too few replicas acknowledge, or if the server of a cluster takes
 * nothing for too long, because a slot is being moved, refuse the requests that wait.  In a cluster
 * those without a key go to another writer. */
void writer_mind_stall(struct writer *writer, int64_t now_ms);

/* ---- loop.c ---- */

/* The thread's function; @argument is the writer. */
void *writer_main(void *argument);

/* A redis_look, called while the thread connects: answers requests whose deadlines are over.
 * False: the thread must stop. */
bool writer_look(void *data);

#endif
