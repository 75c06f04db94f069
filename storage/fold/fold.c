#include "storage/fold/fold.h"

#include <stdlib.h>

#include "storage/base/clock.h"
#include "storage/base/cond.h"
#include "storage/fold/round.h"

#define WAIT_MS      500   /* a round is due when the oldest entry has waited for so long */
#define BATCH_EVENTS 20000 /* a batch has about so many: more merge better, and take more memory */
#define LIMIT_MAX    ((size_t)2 * BATCH_EVENTS) /* a second batch arrives while one is folded */
#define BYTES_MAX    ((int64_t)4 * 1024 * 1024) /* a round is due when so many bytes wait */
#define IN_ORDER_MAX 500  /* with more, a fold takes no other process's log: see reach_of() */
#define POLL_MS      500  /* logs of other processes are looked at so often */
#define AGAIN_MS     50   /* the pause after a failed round, or after an empty one if much waits */
#define HEIR_MS      5000 /* a process that died before the start leaves no more entries by then */
#define HEIR_POLL_MS 2000 /* an heir looks at logs no more often: it reads what others count, too */
#define PAUSE_MAX_MS 250  /* the pause after a round is as long as the round, and at most this */
#define IDLE_MS      20   /* the pause after an empty round: Redis lacks what memory has */

/* While questions come, a round is to take about this time, because each question waits for a
 * round.  So twice as many events may wait as folds count in this time: see set_limit(). */
#define FOLD_US           25000
#define QUESTIONS_COME_MS 1000 /* questions come if the last one came within so long */
#define PER_FOLD_FIRST    2000 /* events, until folds have shown how many they count in FOLD_US */
#define PER_FOLD_LEAST    1000 /* events: with fewer, a fold costs mostly what any fold costs */
#define PER_FOLD_EACH     8    /* events a partition of a cluster: each has its own transactions */

struct fold {
    struct core *core;
    struct unfolded *unfolded;
    pthread_t thread;
    struct round round; /* belongs to the thread, as all that is neither atomic nor locked */
    int64_t hold_ms;    /* tests hold each round up for so long */
    /* All instants are CLOCK_MONOTONIC. */
    int64_t not_before_us;            /* a round begins no earlier, unless much waits */
    int64_t again_us;                 /* a round begins no earlier, also if much waits */
    _Atomic size_t events_per_fold;   /* a round counts so many in FOLD_US */
    _Atomic int64_t last_question_ms; /* when the last question came */
    int64_t next_poll_ms;             /* when logs of other processes are looked at next */
    int64_t heir_until_us; /* until then all logs are folded: reach_of(); INT64_MIN: no more */
    _Atomic bool is_awake; /* the thread is at work, or knows that something waits */

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t work, done;
    bool stop, woken;
    int64_t wanted_us;    /* what was acknowledged before is to be counted */
    int64_t reached_us;   /* what was acknowledged before is counted */
    int64_t tried_us;     /* when the last round began; one that ended well may say its end */
    enum storage_err err; /* how the last round ended */
};

static bool is_much(const struct fold *fold)
{
    int64_t half = (int64_t)atomic_load(&fold->unfolded->limit) / 2;
    return atomic_load(&fold->core->stats.log_events) >= half ||
           atomic_load(&fold->core->stats.log_bytes) >= BYTES_MAX;
}

/* ---- how much may wait ---- */

static size_t least_per_fold(const struct core *core)
{
    size_t least = core->is_spread ? (size_t)core->partitions.n * PER_FOLD_EACH : 0;
    return least > PER_FOLD_LEAST ? least : PER_FOLD_LEAST;
}

/* Do questions come? */
static bool questions_come(struct fold *fold)
{
    return monotonic_ms() - atomic_load(&fold->last_question_ms) < QUESTIONS_COME_MS;
}

/* A question waits until what was acknowledged before it is folded.  So no more is acknowledged
 * ahead of the folds than lets them work on without a pause: what a fold takes at a time, twice. */
static void set_limit(struct fold *fold)
{
    size_t limit = LIMIT_MAX;
    if (questions_come(fold)) {
        limit = 2 * atomic_load(&fold->events_per_fold); /* for one round, and for the next */
    }
    unfolded_limit(fold->unfolded, limit);
}

/* A lane has carried out a transaction (struct lanes: moved). */
static void fold_moved(void *data)
{
    struct fold *fold = data;
    unfolded_moves(fold->unfolded);
    set_limit(fold);
}

/* A round counted @events in @us microseconds.  If that is about as many as a full round has, full
 * rounds get more events from now on, or fewer: by a quarter at most, for one round alone may have
 * been held up. */
static void fold_learn(struct fold *fold, size_t events, int64_t us)
{
    size_t full = atomic_load(&fold->events_per_fold);
    if (events < full / 2 || events > 2 * full) {
        return;
    }
    size_t least = least_per_fold(fold->core);
    size_t more = full + full / 4;
    size_t less = full - full / 4;
    size_t fits = (size_t)((int64_t)full * FOLD_US / (us + 1));
    full = fits < less ? less : fits < more ? fits : more;
    full = full < least ? least : full < BATCH_EVENTS ? full : BATCH_EVENTS;
    atomic_store(&fold->events_per_fold, full);
}

/* ---- when ---- */

/* CLOCK_MONOTONIC, us: when the next round is due.  *ret_waits: something waits to be folded.
 * Under the lock. */
static int64_t next_round_us(const struct fold *fold, bool *ret_waits)
{
    int64_t now_us = monotonic_us();
    int64_t age_ms = unfolded_age_ms(fold->unfolded);
    *ret_waits = atomic_load(&fold->core->stats.log_events) > 0 || age_ms > 0;
    int64_t due = fold->next_poll_ms * 1000;
    if (*ret_waits) {
        int64_t old_enough_us = now_us + (WAIT_MS - age_ms) * 1000;
        due = old_enough_us < due ? old_enough_us : due;
    }
    if (is_much(fold)) {
        return now_us > fold->again_us ? now_us : fold->again_us;
    }
    if (fold->wanted_us > fold->reached_us) {
        due = now_us;
    }
    return due > fold->not_before_us ? due : fold->not_before_us;
}

/* Sleep until a round is due.  False: the thread is to stop.  *ret_asked: a question waits for the
 * round. */
static bool wait_for_round(struct fold *fold, bool *ret_asked)
{
    pthread_mutex_lock(&fold->lock);
    for (;;) {
        fold->woken = false;
        atomic_store(&fold->is_awake, false);
        bool waits;
        int64_t until_us = next_round_us(fold, &waits);
        if (waits) {
            atomic_store(&fold->is_awake, true);
        }
        if (fold->stop || until_us <= monotonic_us()) {
            break;
        }
        while (!fold->stop && !fold->woken && monotonic_us() < until_us) {
            cond_wait_until_us(&fold->work, &fold->lock, until_us);
        }
    }
    atomic_store(&fold->is_awake, true);
    *ret_asked = fold->wanted_us > fold->reached_us;
    bool stop = fold->stop;
    pthread_mutex_unlock(&fold->lock);
    return !stop;
}

void fold_wake(struct fold *fold)
{
    if (atomic_exchange(&fold->is_awake, true) && !is_much(fold)) {
        return;
    }
    pthread_mutex_lock(&fold->lock);
    fold->woken = true;
    pthread_cond_signal(&fold->work);
    pthread_mutex_unlock(&fold->lock);
}

/* ---- the thread ---- */

/* A round has ended with @err.  It had to count what was acknowledged before @served_us: in all
 * logs, or without @all in some. */
static void fold_answer(struct fold *fold, int64_t served_us, bool all, enum storage_err err)
{
    if (all && err == STORAGE_OK) {
        core_settled(fold->core, served_us);
    }
    pthread_mutex_lock(&fold->lock);
    fold->err = err;
    fold->tried_us = served_us;
    if (all && err == STORAGE_OK) {
        fold->reached_us = served_us;
    }
    if (all) {
        pthread_cond_broadcast(&fold->done);
    }
    pthread_mutex_unlock(&fold->lock);
}

/* Tests hold a round up, to see what is done meanwhile. */
static void fold_hold(struct fold *fold)
{
    int64_t until_ms = monotonic_ms() + fold->hold_ms;
    pthread_mutex_lock(&fold->lock);
    while (fold->hold_ms > 0 && !fold->stop && monotonic_ms() < until_ms) {
        cond_wait_until_ms(&fold->work, &fold->lock, until_ms);
    }
    pthread_mutex_unlock(&fold->lock);
}

/* Visits count in the order of arrival, and a visitor may come to another process within half a
 * second.  So the logs of other processes are folded with the own one.  With many events that costs
 * much: every process then reads from Redis what all have acknowledged, and most has been counted.
 *
 * A process that has just begun may be the heir of one that was killed, whose events arrived before
 * its own. */
static enum round_reach reach_of(struct fold *fold, bool asked)
{
    int64_t waiting = atomic_load(&fold->core->stats.log_events);
    bool in_order = waiting > 0 && waiting <= IN_ORDER_MAX;
    if (asked || in_order || fold->heir_until_us != INT64_MIN) {
        return ROUND_ALL;
    }
    if (monotonic_ms() >= fold->next_poll_ms) {
        return ROUND_FORSAKEN;
    }
    return ROUND_OWN;
}

/* How many events a batch of the next round has: all that may wait.  The more events are folded at
 * once, the less each of them costs, and a question waits for all of them anyway. */
static size_t most_events(struct fold *fold)
{
    size_t limit = atomic_load(&fold->unfolded->limit);
    int64_t waiting = atomic_load(&fold->core->stats.log_events);
    size_t n = waiting > (int64_t)limit ? (size_t)waiting : limit;
    return n < BATCH_EVENTS ? n : BATCH_EVENTS;
}

/* Run a round that questions wait for.  Where nothing was acknowledged while the round went on, it
 * has counted what was acknowledged until its end, *ret_us, and serves the questions that came
 * meanwhile.  Else *ret_us stays. */
static enum storage_err run_kept(struct fold *fold, int64_t *ret_us)
{
    unfolded_keep(fold->unfolded);
    enum storage_err err = round_run(&fold->round, ROUND_ALL);
    int64_t now_us = monotonic_us();
    bool is_all = err == STORAGE_OK && unfolded_keeps_all(fold->unfolded) &&
                  round_others_are_folded(&fold->round);
    if (unfolded_end_keep(fold->unfolded) && is_all) {
        *ret_us = now_us;
    }
    return err;
}

static void fold_run(struct fold *fold, bool asked)
{
    int64_t begun_us = monotonic_us();
    int64_t events = atomic_load(&fold->core->stats.fold_events);
    /* A question waits for the round, or may come while the round goes on. */
    bool keeps = !fold->core->is_spread && (asked || questions_come(fold));
    enum round_reach reach = reach_of(fold, asked || keeps);
    fold->round.events_max = most_events(fold);
    int64_t settled_us = begun_us;
    enum storage_err err = keeps ? run_kept(fold, &settled_us) : round_run(&fold->round, reach);
    int64_t now_us = monotonic_us();
    int64_t pause_us = now_us - begun_us;
    pause_us = pause_us < PAUSE_MAX_MS * 1000 ? pause_us : PAUSE_MAX_MS * 1000;
    events = atomic_load(&fold->core->stats.fold_events) - events;
    if (events > 0) {
        fold_learn(fold, (size_t)events, now_us - begun_us);
        atomic_store(&fold->core->folded_us, now_us);
        atomic_fetch_add(&fold->core->stats.folds, 1);
        storage_histogram_observe(&fold->core->stats.fold_seconds, now_us - begun_us);
    } else if (!asked) {
        pause_us = IDLE_MS * 1000;
    }
    fold->again_us = now_us + (err == STORAGE_OK && events > 0 ? 0 : AGAIN_MS * 1000);
    fold->not_before_us = err == STORAGE_OK ? now_us + pause_us : fold->again_us;
    if (reach != ROUND_OWN) {
        bool is_heir = fold->heir_until_us != INT64_MIN;
        fold->next_poll_ms = now_us / 1000 + (is_heir ? HEIR_POLL_MS : POLL_MS);
    }
    if (reach == ROUND_ALL && err == STORAGE_OK && begun_us >= fold->heir_until_us) {
        fold->heir_until_us = INT64_MIN;
    }
    fold_answer(fold, settled_us, reach == ROUND_ALL, err);
}

static void *fold_main(void *argument)
{
    struct fold *fold = argument;
    bool asked;
    while (wait_for_round(fold, &asked)) {
        fold_hold(fold);
        fold_run(fold, asked);
    }
    return NULL;
}

/* Under the lock: has a round that began at @since_us or later found a fault that no waiting mends?
 */
static bool is_hopeless(const struct fold *fold, int64_t since_us)
{
    return (fold->err == STORAGE_CONFIG || fold->err == STORAGE_STATE_LOST) &&
           fold->tried_us >= since_us;
}

/* Under the lock: is the wait over that began at @now_us, for what was acknowledged before
 * @before_us? */
static bool is_answered(const struct fold *fold, int64_t before_us, int64_t now_us)
{
    return fold->reached_us >= before_us || is_hopeless(fold, now_us) || fold->stop;
}

enum storage_err fold_catch_up(struct fold *fold, int64_t before_us, int64_t deadline_ms)
{
    int64_t now_us = monotonic_us();
    before_us++; /* a round that began in the same microsecond may be too early */
    atomic_store(&fold->last_question_ms, now_us / 1000);
    set_limit(fold);
    pthread_mutex_lock(&fold->lock);
    fold->wanted_us = before_us > fold->wanted_us ? before_us : fold->wanted_us;
    fold->woken = true;
    pthread_cond_signal(&fold->work);
    while (!is_answered(fold, before_us, now_us) && monotonic_ms() < deadline_ms) {
        cond_wait_until_ms(&fold->done, &fold->lock, deadline_ms);
    }
    /* The loss was found before this wait began, and by no round since: it may be mended. */
    bool was_lost = fold->err == STORAGE_STATE_LOST && fold->tried_us < now_us;
    enum storage_err err = fold->reached_us >= before_us         ? STORAGE_OK
                           : fold->stop                          ? STORAGE_SHUTDOWN
                           : fold->err == STORAGE_OK || was_lost ? STORAGE_LATE
                                                                 : fold->err;
    pthread_mutex_unlock(&fold->lock);
    return err;
}

/* ---- life ---- */

static void fold_free(struct fold *fold)
{
    round_release(&fold->round);
    pthread_cond_destroy(&fold->work);
    pthread_cond_destroy(&fold->done);
    pthread_mutex_destroy(&fold->lock);
    free(fold);
}

struct fold *fold_start(struct core *core, struct unfolded *unfolded, struct seen_fold *seen_fold)
{
    struct fold *fold = calloc(1, sizeof(*fold));
    const char *hold_ms = getenv("TALLYD_TEST_FOLD_HOLD");
    if (fold == NULL) {
        return NULL;
    }
    mutex_init(&fold->lock);
    cond_init(&fold->work);
    cond_init(&fold->done);
    fold->core = core;
    fold->unfolded = unfolded;
    fold->hold_ms = hold_ms == NULL ? 0 : strtol(hold_ms, NULL, 10);
    fold->next_poll_ms = monotonic_ms() + HEIR_POLL_MS;
    fold->heir_until_us = monotonic_us() + HEIR_MS * 1000;
    atomic_store(&fold->events_per_fold, PER_FOLD_FIRST);
    atomic_store(&fold->last_question_ms, INT64_MIN / 2);
    set_limit(fold);
    bool ok = round_init(&fold->round, core, unfolded, seen_fold);
    fold->round.lanes.moved = fold_moved;
    fold->round.lanes.moved_data = fold;
    if (!ok || pthread_create(&fold->thread, NULL, fold_main, fold) != 0) {
        fold_free(fold);
        return NULL;
    }
    return fold;
}

void fold_stop(struct fold *fold)
{
    pthread_mutex_lock(&fold->lock);
    fold->stop = true;
    pthread_cond_signal(&fold->work);
    pthread_cond_broadcast(&fold->done);
    pthread_mutex_unlock(&fold->lock);
    pthread_join(fold->thread, NULL);
    fold_free(fold);
}
