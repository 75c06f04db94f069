#include "storage/fold/fold.h"

#include <stdlib.h>

#include "storage/base/clock.h"
#include "storage/base/cond.h"
#include "storage/fold/round.h"

#define WAIT_MS    500 /* the oldest entry waits so long.. */
#define EVENTS_MAX 50000
#define BYTES_MAX  ((int64_t)4 * 1024 * 1024) /* ..or until there is so much */
#define POLL_MS    2000                       /* how often logs of others are looked at */
#define AGAIN_MS   50                         /* after a fold that failed */
#define IDLE_MS    20 /* after one that counted nothing: Redis lacks what memory has */

/* No more is acknowledged ahead of the folds than they count in about this time.. */
#define AHEAD_US     250000
#define ASKED_US     15000 /* ..or this, while questions come: each waits for it */
#define ASKED_FOR_MS 1000  /* questions come: the last one came within so long */
#define LIMIT_MIN    1000  /* events; and fewer say more of what a fold costs by itself */
#define FIRST_US     8.0   /* an event, until a fold has shown it */

struct fold {
    struct core *core;
    struct unfolded *unfolded;
    pthread_t thread;
    struct round round;       /* the thread's own */
    int64_t hold_ms;          /* for tests */
    int64_t not_before_us;    /* the next fold, also if it is asked for.. */
    int64_t again_us;         /* ..and also if much waits */
    double us_per_event;      /* of the last folds */
    _Atomic size_t limit;     /* so many events may wait */
    _Atomic int64_t asked_ms; /* the last question */
    int64_t next_poll_ms;
    _Atomic bool is_awake; /* it knows that something waits, or is at work */

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t work, done;
    bool stop, woken;
    uint64_t asked, answered; /* calls of fold_catch_up(); those up to `answered` are answered */
    enum storage_err err;     /* of the last round */
};

static bool is_much(const struct fold *fold)
{
    size_t limit = atomic_load(&fold->limit);
    int64_t much = limit < EVENTS_MAX ? (int64_t)limit : EVENTS_MAX;
    return atomic_load(&fold->core->stats.log_events) >= much ||
           atomic_load(&fold->core->stats.log_bytes) >= BYTES_MAX;
}

/* ---- how much may wait ---- */

/* A question waits until what was acknowledged before it is folded.  So no more is acknowledged
 * ahead of the folds than they count in a moment, which is shorter while questions come. */
static void set_limit(void *data)
{
    struct fold *fold = data;
    int64_t since_ms = monotonic_ms() - atomic_load(&fold->asked_ms);
    int64_t ahead_us = since_ms < ASKED_FOR_MS ? ASKED_US : AHEAD_US;
    double events = (double)ahead_us / fold->us_per_event;
    size_t limit = events < LIMIT_MIN             ? LIMIT_MIN
                   : events > UNFOLDED_EVENTS_MAX ? UNFOLDED_EVENTS_MAX
                                                  : (size_t)events;
    atomic_store(&fold->limit, limit);
    unfolded_limit(fold->unfolded, limit);
}

/* A fold of @events took @us. */
static void learn(struct fold *fold, int64_t events, int64_t us)
{
    double now = (double)us / (double)events;
    if (events >= LIMIT_MIN) {
        fold->us_per_event = (3 * fold->us_per_event + now) / 4;
    }
}

/* ---- when ---- */

/* CLOCK_MONOTONIC, us: when the next round is due.  Under the lock. */
static int64_t due_us(struct fold *fold)
{
    int64_t now_us = monotonic_us();
    int64_t age_ms = unfolded_age_ms(fold->unfolded);
    bool waits = atomic_load(&fold->core->stats.log_events) > 0 || age_ms > 0;
    int64_t due = fold->next_poll_ms * 1000;
    if (waits) {
        int64_t old_enough_us = now_us + (WAIT_MS - age_ms) * 1000;
        due = old_enough_us < due ? old_enough_us : due;
        atomic_store(&fold->is_awake, true);
    }
    if (is_much(fold)) {
        return now_us > fold->again_us ? now_us : fold->again_us;
    }
    if (fold->asked > fold->answered) {
        due = now_us;
    }
    return due > fold->not_before_us ? due : fold->not_before_us;
}

/* Sleep until a round is due.  False: it is time to stop.  *ret_asked: calls up to this one are
 * answered by the round. */
static bool wait_for_round(struct fold *fold, uint64_t *ret_asked)
{
    pthread_mutex_lock(&fold->lock);
    for (;;) {
        fold->woken = false;
        atomic_store(&fold->is_awake, false);
        int64_t until_us = due_us(fold);
        if (fold->stop || until_us <= monotonic_us()) {
            break;
        }
        while (!fold->stop && !fold->woken && monotonic_us() < until_us) {
            cond_wait_until_us(&fold->work, &fold->lock, until_us);
        }
    }
    atomic_store(&fold->is_awake, true);
    *ret_asked = fold->asked;
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

static void answer(struct fold *fold, uint64_t asked, enum storage_err err)
{
    pthread_mutex_lock(&fold->lock);
    fold->err = err;
    if (err == STORAGE_OK || err == STORAGE_CONFIG) {
        fold->answered = asked;
        pthread_cond_broadcast(&fold->done);
    }
    pthread_mutex_unlock(&fold->lock);
}

static void hold(struct fold *fold)
{
    int64_t until_ms = monotonic_ms() + fold->hold_ms;
    pthread_mutex_lock(&fold->lock);
    while (fold->hold_ms > 0 && !fold->stop && monotonic_ms() < until_ms) {
        cond_wait_until_ms(&fold->work, &fold->lock, until_ms);
    }
    pthread_mutex_unlock(&fold->lock);
}

static enum round_reach reach_of(struct fold *fold, bool asked)
{
    if (asked) {
        return ROUND_ALL;
    }
    if (monotonic_ms() >= fold->next_poll_ms) {
        return ROUND_FORSAKEN;
    }
    return ROUND_OWN;
}

static void run(struct fold *fold, uint64_t asked)
{
    int64_t begun_us = monotonic_us();
    int64_t events = atomic_load(&fold->core->stats.fold_events);
    enum round_reach reach = reach_of(fold, asked > fold->answered);
    enum storage_err err = round_run(&fold->round, reach);
    int64_t now_us = monotonic_us();
    int64_t pause_us = now_us - begun_us;
    events = atomic_load(&fold->core->stats.fold_events) - events;
    if (events > 0) {
        learn(fold, events, now_us - begun_us);
        atomic_fetch_add(&fold->core->stats.folds, 1);
        storage_histogram_observe(&fold->core->stats.fold_seconds, now_us - begun_us);
    } else if (asked == fold->answered) {
        pause_us = IDLE_MS * 1000;
    }
    fold->again_us = now_us + (err == STORAGE_OK && events > 0 ? 0 : AGAIN_MS * 1000);
    fold->not_before_us = err == STORAGE_OK ? now_us + pause_us : fold->again_us;
    if (reach != ROUND_OWN) {
        fold->next_poll_ms = now_us / 1000 + POLL_MS;
    }
    answer(fold, asked, err);
}

static void *fold_main(void *argument)
{
    struct fold *fold = argument;
    uint64_t asked;
    while (wait_for_round(fold, &asked)) {
        hold(fold);
        run(fold, asked);
    }
    return NULL;
}

enum storage_err fold_catch_up(struct fold *fold, int64_t deadline_ms)
{
    atomic_store(&fold->asked_ms, monotonic_ms());
    pthread_mutex_lock(&fold->lock);
    uint64_t mine = ++fold->asked;
    fold->woken = true;
    pthread_cond_signal(&fold->work);
    while (fold->answered < mine && !fold->stop && monotonic_ms() < deadline_ms) {
        cond_wait_until_ms(&fold->done, &fold->lock, deadline_ms);
    }
    enum storage_err err = fold->err == STORAGE_OK ? STORAGE_LATE : fold->err;
    if (fold->stop) {
        err = STORAGE_SHUTDOWN;
    } else if (fold->answered >= mine && fold->err != STORAGE_CONFIG) {
        err = STORAGE_OK;
    }
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
    fold->next_poll_ms = monotonic_ms() + POLL_MS;
    fold->us_per_event = FIRST_US;
    atomic_store(&fold->limit, EVENTS_MAX);
    atomic_store(&fold->asked_ms, INT64_MIN / 2);
    bool ok = round_init(&fold->round, core, unfolded, seen_fold);
    fold->round.moved = set_limit;
    fold->round.moved_data = fold;
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
