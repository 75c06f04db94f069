#include "storage/seen/fold.h"

#include <stdlib.h>

#include "storage/base/clock.h"
#include "storage/base/cond.h"
#include "storage/schema/key.h"
#include "storage/seen/fold_log.h"
#include "storage/session/sessions.h"

#define DUE_MAX    256 /* logs that wait */
#define CONNECT_MS 1000
#define STEP_MS    2000 /* a log that takes longer waits for its next turn */

struct due {
    unsigned partition;
    char site[EVENT_SITE_MAX];
    size_t site_n;
    struct bucket month;
};

struct seen_fold {
    struct core *core;
    pthread_t thread;
    struct sessions sessions; /* belongs to the thread */
    struct fold_log log;      /* belongs to the thread */

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t work;
    bool stop;
    struct due due[DUE_MAX]; /* a ring */
    size_t first, n;
};

/* ---- what is due ---- */

/* Take the key of a log apart: t:{tag}:seen:<site>:<month>:log */
static bool seen_fold_parse(
    struct core *core, unsigned partition, struct slice text, struct due *ret)
{
    struct key key;
    struct slice site;
    struct slice head = key_fixed(&key, core->partitions.tag[partition], "seen:", SLICE(""));
    static const struct slice tail = {":log", 4};
    if (text.n < head.n + tail.n || !slice_begins(text, head) ||
        memcmp(text.p + text.n - tail.n, tail.p, tail.n) != 0) {
        return false;
    }
    struct slice member = {text.p + head.n, text.n - head.n - tail.n};
    if (!key_open_parse(member, zone_utc(), &site, &ret->month) || site.n > sizeof(ret->site)) {
        return false;
    }
    memcpy(ret->site, site.p, site.n);
    ret->site_n = site.n;
    ret->partition = partition;
    return true;
}

static bool seen_fold_same(const struct due *a, const struct due *b)
{
    return a->partition == b->partition && a->month.start_s == b->month.start_s &&
           a->site_n == b->site_n && memcmp(a->site, b->site, a->site_n) == 0;
}

static void seen_fold_append(struct seen_fold *fold, const struct due *due)
{
    pthread_mutex_lock(&fold->lock);
    bool known = fold->n == DUE_MAX;
    for (size_t i = 0; !known && i < fold->n; i++) {
        known = seen_fold_same(&fold->due[(fold->first + i) % DUE_MAX], due);
    }
    if (!known) {
        fold->due[(fold->first + fold->n++) % DUE_MAX] = *due;
        pthread_cond_signal(&fold->work);
    }
    pthread_mutex_unlock(&fold->lock);
}

void seen_fold_due(struct seen_fold *fold, unsigned partition, struct slice keys)
{
    struct slice key;
    while (fold != NULL && slice_take_until(&keys, ' ', &key)) {
        struct due due;
        if (seen_fold_parse(fold->core, partition, key, &due)) {
            seen_fold_append(fold, &due);
        }
    }
}

/* Wait for the next log that is due.  False: it is time to stop. */
static bool seen_fold_next(struct seen_fold *fold, struct due *ret)
{
    pthread_mutex_lock(&fold->lock);
    while (fold->n == 0 && !fold->stop) {
        pthread_cond_wait(&fold->work, &fold->lock);
    }
    bool stop = fold->stop;
    if (!stop) {
        *ret = fold->due[fold->first];
        fold->first = (fold->first + 1) % DUE_MAX;
        fold->n--;
    }
    pthread_mutex_unlock(&fold->lock);
    return !stop;
}

/* ---- the thread ---- */

/* Fold one log.  A connection that was idle may have been lost long ago, so there is a second try.
 */
static void fold_due(struct seen_fold *fold, const struct due *due)
{
    struct fold_log *log = &fold->log;
    for (int tries = 0; tries < 2; tries++) {
        int64_t now_ms = monotonic_ms();
        struct session *session =
            sessions_get(&fold->sessions, due->partition, now_ms + CONNECT_MS);
        if (session == NULL ||
            fold_log(log, session, due->partition, (struct slice){due->site, due->site_n},
                due->month, now_ms + STEP_MS)) {
            return;
        }
        session_lost(session);
    }
}

static void *fold_main(void *argument)
{
    struct seen_fold *fold = argument;
    struct due due;
    while (seen_fold_next(fold, &due)) {
        fold_due(fold, &due);
    }
    fold_log_release(&fold->log);
    sessions_release(&fold->sessions);
    return NULL;
}

static void seen_fold_free(struct seen_fold *fold)
{
    pthread_cond_destroy(&fold->work);
    pthread_mutex_destroy(&fold->lock);
    free(fold);
}

struct seen_fold *seen_fold_start(struct core *core)
{
    struct seen_fold *fold = calloc(1, sizeof(*fold));
    if (fold == NULL) {
        return NULL;
    }
    mutex_init(&fold->lock);
    cond_init(&fold->work);
    fold->core = core;
    fold_log_init(&fold->log, core);
    sessions_init(&fold->sessions, core, (struct redis_look){core_runs, core, 0});
    if (pthread_create(&fold->thread, NULL, fold_main, fold) != 0) {
        seen_fold_free(fold);
        return NULL;
    }
    return fold;
}

void seen_fold_stop(struct seen_fold *fold)
{
    pthread_mutex_lock(&fold->lock);
    fold->stop = true;
    pthread_cond_signal(&fold->work);
    pthread_mutex_unlock(&fold->lock);
    pthread_join(fold->thread, NULL);
    seen_fold_free(fold);
}
