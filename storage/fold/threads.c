#include "storage/fold/threads.h"

#include <pthread.h>
#include <sched.h>

#include "storage/base/clock.h"
#include "storage/fold/cut.h"
#include "storage/fold/streams.h"

#define CONNECT_MS  1000
#define BESIDE_ROWS 2000 /* a smaller batch is not worth a second thread */

bool threads_init(struct fold_threads *threads, struct core *core, const struct redis_look *look,
    struct seen_fold *seen_fold, struct shared_memory *shared)
{
    bool ok = true;
    *threads = (struct fold_threads){.core = core};
    for (unsigned i = 0; ok && i < FOLD_THREADS; i++) {
        threads->workers[i].session.look = *look;
        threads->workers[i].tx = transaction_new(core, seen_fold, shared);
        ok = threads->workers[i].tx != NULL;
    }
    return ok;
}

void threads_forget(struct fold_threads *threads)
{
    for (unsigned i = 0; i < FOLD_THREADS; i++) {
        struct fold_worker *worker = &threads->workers[i];
        session_close(&worker->session);
        if (worker->tx != NULL) {
            transaction_forget(worker->tx);
        }
    }
}

void threads_release(struct fold_threads *threads)
{
    threads_forget(threads);
    for (unsigned i = 0; i < FOLD_THREADS; i++) {
        transaction_free(threads->workers[i].tx);
        heads_release(&threads->workers[i].heads);
    }
}

bool threads_connect(struct core *core, struct session *session)
{
    char error[160];
    int64_t deadline_ms = monotonic_ms() + CONNECT_MS;
    if (!session_open(session, core, deadline_ms, error, sizeof(error))) {
        return false;
    }
    redis_limit_silence(session->redis, THREADS_SILENCE_MS);
    return true;
}

/* ---- one thread ---- */

/* What one thread folds of a batch, and how that ended. */
struct fold_range {
    struct fold_threads *threads;
    const struct batch *batch;
    struct session *session;
    struct transaction *tx;
    struct heads *heads;
    struct cutter cutter;
    int trim; /* by the last transaction: see transaction_run() */
    enum fold_end result;
    uint32_t stale; /* the log, of FOLD_STALE */
    enum storage_err err;
};

/* What the next transaction counts; none at the end. */
static struct fold_cuts next_cuts(
    struct fold_range *range, struct cut cuts[CUTS_MAX], bool *no_more)
{
    if (*no_more) {
        return (struct fold_cuts){.n = 0};
    }
    unsigned n =
        cutter_next(&range->cutter, transaction_limit_us(range->tx, range->batch), cuts, no_more);
    return (struct fold_cuts){cuts, n};
}

/* Redis wakes a thread of the fold by an answer, and has more to do.  Where both are on one
 * processor, the thread is to wait for another one.  Source: sched(7), SCHED_BATCH. */
static void give_way_to_redis(void)
{
    struct sched_param none = {0};
    (void)pthread_setschedparam(pthread_self(), SCHED_BATCH, &none);
}

static void *range_fold(void *data)
{
    struct fold_range *range = data;
    const struct fold_threads *threads = range->threads;
    struct cut cuts[2][CUTS_MAX]; /* of this transaction and the next, in turn */
    bool no_more = false;
    range->result = FOLD_DONE;
    range->err = STORAGE_OK;
    give_way_to_redis();
    struct fold_cuts next = next_cuts(range, cuts[0], &no_more);
    for (unsigned i = 1; range->result == FOLD_DONE && next.n > 0; i++) {
        struct fold_cuts now = next;
        next = next_cuts(range, cuts[i % 2], &no_more);
        range->result = transaction_run(range->tx, range->session, range->batch, now, next,
            next.n == 0 ? range->trim : -1, monotonic_ms() + FOLD_STEP_MS, range->heads,
            &range->stale, &range->err);
        if (range->result == FOLD_DONE && threads->moved != NULL) {
            threads->moved(threads->moved_data);
        }
    }
    return NULL;
}

/* ---- all threads ---- */

/* How many threads the batch is worth: at most as many as have a connection to the same server. */
static unsigned threads_for(struct fold_threads *threads, const struct batch *batch)
{
    unsigned n_partitions = threads->core->partitions.n;
    unsigned most = FOLD_THREADS < n_partitions ? FOLD_THREADS : n_partitions;
    unsigned n = 1;
    bool is_small = batch->n_rows < BESIDE_ROWS;
    for (bool can = !is_small; can && n < most; n += can) {
        struct fold_worker *worker = &threads->workers[n];
        if (!session_is_current(&worker->session)) {
            session_close(&worker->session);
            transaction_forget(worker->tx);
            can = threads_connect(threads->core, &worker->session);
        }
    }
    return n;
}

/* The worst end of all: one that is lost says nothing of what it did. */
static const struct fold_range *worst(const struct fold_range *ranges, unsigned n)
{
    const struct fold_range *is = &ranges[0];
    for (unsigned i = 1; i < n; i++) {
        if (is->result == FOLD_DONE || ranges[i].result == FOLD_LOST) {
            is = &ranges[i];
        }
    }
    return is;
}

/* Fold @all on @n threads, this one among them.
 *
 * Each range takes its first partition here, before another thread runs.  So the first one always
 * has a transaction, whose reading of the heads is what the round's goal rests on. */
static struct fold_range fold_shared(
    struct fold_threads *threads, const struct fold_range *all, unsigned n)
{
    struct fold_range ranges[FOLD_THREADS];
    pthread_t ids[FOLD_THREADS];
    bool has_thread[FOLD_THREADS] = {false};
    struct cut_shares shares = {0};
    const unsigned first = cut_first(all->batch, threads->core->partitions.n);
    for (unsigned i = 0; i < n; i++) {
        struct fold_worker *worker = &threads->workers[i];
        ranges[i] = *all;
        if (i > 0) {
            ranges[i].session = &worker->session;
            ranges[i].heads = &worker->heads;
        }
        ranges[i].tx = worker->tx;
        ranges[i].cutter.sketches = transaction_sketches(worker->tx);
        cutter_share(&ranges[i].cutter, &shares, first + i * threads->core->partitions.n / n);
    }
    for (unsigned i = 1; i < n; i++) {
        has_thread[i] = pthread_create(&ids[i], NULL, range_fold, &ranges[i]) == 0;
    }
    for (unsigned i = 0; i < n; i++) {
        if (has_thread[i]) {
            (void)pthread_join(ids[i], NULL);
        } else {
            (void)range_fold(&ranges[i]);
        }
    }
    return *worst(ranges, n);
}

enum fold_end threads_count(struct fold_threads *threads, struct session *session,
    const struct batch *batch, struct heads *heads, int trim, uint32_t *ret_log,
    enum storage_err *ret_err)
{
    struct fold_range all = {.threads = threads,
        .batch = batch,
        .session = session,
        .tx = threads->workers[0].tx,
        .heads = heads,
        .trim = -1};
    cutter_begin(&all.cutter, threads->core, batch);
    all.cutter.sketches = transaction_sketches(all.tx);
    unsigned n = threads_for(threads, batch);
    if (n == 1) {
        all.trim = trim;
        (void)range_fold(&all);
    } else {
        all = fold_shared(threads, &all, n);
        if (all.result == FOLD_DONE && trim >= 0) { /* only now all threads have counted it */
            const struct batch_log *log = &batch->logs[trim];
            enum redis_status status = stream_trim(
                threads->core, session, monotonic_ms() + FOLD_STEP_MS, log->id, log->to);
            all.result = status == REDIS_OK_STATUS ? FOLD_DONE : FOLD_LOST;
        }
    }
    *ret_log = all.stale;
    *ret_err = all.err;
    return all.result;
}
