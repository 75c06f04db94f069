/* writer_state.h - the writer's insides, and what its three files ask of each other.
 *
 * Layer: storage, private to writer.c (what waits for the thread, and its life), loop.c (what the
 * thread does) and connection.c (its connection, and patience where there is none).
 *
 * Ownership: a job belongs to the queue until it is taken, then to the entry it went into.  Thread
 * safety: what is under `lock` from any thread; the rest is the writer thread's own, and all
 * functions here are called on it.
 */
#ifndef STORAGE_LOG_WRITER_STATE_H
#define STORAGE_LOG_WRITER_STATE_H

#include "storage/core/session.h"
#include "storage/job/queue.h"
#include "storage/log/append.h"

#define WRITER_RETRY_MIN_MS 10 /* between two attempts to connect, at first */

struct writers_share;

struct writer {
    struct core *core;
    struct writers_share *share;
    _Atomic bool is_connected; /* the thread's, for others to look at; and.. */
    _Atomic int away;          /* ..an enum storage_err: see writer_away() */
    pthread_t thread;
    int wake_fd;          /* eventfd */
    atomic_bool wake_due; /* by writer_flush() */

    pthread_mutex_t lock; /* guards all up to the blank line */
    pthread_cond_t idle;
    struct job_queue queue;
    size_t shown_events; /* of `queue`, in the gauge of all writers */
    size_t wake_at;      /* the thread sleeps until so many events wait; SIZE_MAX: do not wake it */
    bool busy;           /* jobs are waiting or under way */
    bool draining, stop;
    int64_t drain_deadline_ms;

    /* The thread's own. */
    struct session session;
    struct appender appender;
    unsigned servers_changes; /* servers_changes() when it last tried to connect */
    bool output_left;         /* the socket did not take everything */
    bool lost;                /* give the connection up */
    int64_t connected_ms;     /* since when */
    int64_t heard_ms;         /* last reply, or last time none was awaited */
    int64_t hinted_ms;        /* when the topology was told last that nothing comes */
    int64_t disconnected_ms;  /* since when; 0 while connected */
    int64_t next_connect_ms, retry_ms;
    int64_t late_ms; /* when the time of a request is up that waits for an answer */
};

/* ---- writer.c: what waits ---- */

/* The jobs of the next entry, if @min_events wait; else NULL. */
struct storage_job *writer_take_jobs(struct writer *writer, size_t min_events, size_t room);

/* Waiting jobs whose time is up: nothing of them was sent.  Returns when that of the first one is
 * that waits on; INT64_MAX: none does.  They wait in order of arrival, and all have the same time,
 * so few are due before it. */
int64_t writer_fail_late(struct writer *writer, int64_t now_ms);

/* All requests that wait for an entry; what may go to another writer goes there. */
void writer_fail_waiting(struct writer *writer, enum storage_err err);

/* ---- connection.c ---- */

/* One attempt.  Requests that are late meanwhile are answered. */
void writer_try_connect(struct writer *writer, int64_t now_ms);

void writer_disconnect(struct writer *writer, int64_t now_ms);

/* Without a connection for too long: the requests that wait are answered, and new ones are refused
 * at once. */
void writer_lose_patience(struct writer *writer, int64_t now_ms);

/* Connected, but too few replicas acknowledge; or, of a cluster, the server takes nothing for too
 * long, because the slot is being moved.  Requests that wait are refused; in a cluster those
 * without a key go to another writer. */
void writer_mind_stall(struct writer *writer, int64_t now_ms);

/* ---- loop.c ---- */

/* The thread; @argument is the writer. */
void *writer_main(void *argument);

/* While it connects (a redis_look): answers who is late.  False: it is to stop. */
bool writer_look(void *data);

#endif
