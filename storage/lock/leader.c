#include "storage/lock/leader.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "storage/base/clock.h"
#include "storage/base/cond.h"
#include "storage/lock/redlock.h"
#include "storage/session/server.h"

/* Longest wait for the Redis that has the data, once to connect and once to ask. */
#define HOME_MS        800
#define AGAIN_MS       300 /* pause after a renewal that was not answered */
#define NOT_READY_MS   200
#define ACQUIRE_MIN_MS 5 /* pause after the end of another process's lease */
#define ACQUIRE_JITTER 50
#define QUICK_TRIES    3

struct leader {
    struct core *core;
    pthread_t thread;

    pthread_mutex_t lock; /* guards the next block */
    pthread_cond_t changed;
    int64_t token;    /* 0: not leading */
    int64_t until_ms; /* the token holds until then, CLOCK_MONOTONIC */
    int64_t floor;    /* the next token must be greater */
    bool wish, nudged, stop;

    pthread_mutex_t chore_lock; /* guards `chore`, and is held while the chore looks */
    struct leader_chore chore;

    /* The thread's own. */
    struct lock_server home; /* the connection to partition 0's server, which has the data */
    struct server server;    /* which server that is */
    struct redlock others;
    struct lock home_lock;
    struct key fence, wish_key;
    char name[LOCK_TOKEN - 40];
    bool keeps;      /* home_lock may be there: no answer said that it was given back */
    int64_t next_ms; /* when the lock is to be looked at */
    unsigned tries;  /* attempts without a quorum, one after another */
    bool no_quorum;  /* the caller of storage was told that too few of `others` answer */
};

/* ---- what others see ---- */

/* Must another token be drawn, because a greater one was seen? */
static bool is_outranked(const struct leader *l)
{
    return l->token != 0 && l->token < l->floor;
}

int64_t leader_token(struct leader *l)
{
    pthread_mutex_lock(&l->lock);
    int64_t token = !is_outranked(l) && monotonic_ms() < l->until_ms ? l->token : 0;
    pthread_mutex_unlock(&l->lock);
    return token;
}

void leader_outranked(struct leader *l, int64_t token)
{
    pthread_mutex_lock(&l->lock);
    l->floor = token > l->floor ? token : l->floor;
    pthread_cond_signal(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

bool leader_take_wish(struct leader *l)
{
    pthread_mutex_lock(&l->lock);
    bool wish = l->wish;
    l->wish = false;
    pthread_mutex_unlock(&l->lock);
    return wish;
}

void leader_set_chore(struct leader *l, struct leader_chore chore)
{
    pthread_mutex_lock(&l->chore_lock);
    l->chore = chore;
    pthread_mutex_unlock(&l->chore_lock);
}

void leader_nudge(struct leader *l)
{
    pthread_mutex_lock(&l->lock);
    l->nudged = true;
    pthread_cond_signal(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

/* Lead with @token until @until_ms; token 0: do not lead. */
static void leader_publish(struct leader *l, int64_t token, int64_t until_ms)
{
    pthread_mutex_lock(&l->lock);
    bool changed = l->token != token;
    l->token = token;
    l->until_ms = until_ms;
    pthread_mutex_unlock(&l->lock);
    atomic_store(&l->core->stats.rollup_leader, token != 0);
    if (changed) {
        wake_up(&l->core->rollup_wake);
    }
}

/* ---- the lock ---- */

/* Answer the jobs whose time is up (struct leader_chore), and return when to look again.  The lock
 * is released before jobs are answered: an answer takes locks that this file does not know. */
static int64_t do_chore(struct leader *l)
{
    struct storage_job *late = NULL;
    int64_t next_ms = INT64_MAX;
    pthread_mutex_lock(&l->chore_lock); /* leader_set_chore waits for it */
    if (l->chore.take_late != NULL) {
        next_ms = l->chore.take_late(l->chore.data, &late);
    }
    pthread_mutex_unlock(&l->chore_lock);
    jobs_done(late, STORAGE_UNKNOWN);
    return next_ms;
}

/* Do the chore while the thread waits for Redis; a redis_look. */
static bool do_chore_beside(void *data)
{
    (void)do_chore(data);
    return true;
}

static void home_refused(void *data, const struct reply *reply)
{
    struct leader *l = data;
    server_refused(l->core, &l->server, 0, reply);
}

static void set_look(struct leader *l)
{
    struct redis_look beside = {do_chore_beside, l, 0};
    l->home.look = beside;
    l->home.refused = home_refused;
    l->home.refused_data = l;
    for (unsigned i = 0; i < l->others.n; i++) {
        l->others.servers[i].look = beside;
    }
}

/* Connect to the Redis that has the data of partition 0, unless connected. */
static void connect_home(struct leader *l)
{
    char error[160];
    if (l->home.redis != NULL && server_is_current(l->core, &l->server)) {
        return;
    }
    lock_disconnect(&l->home);
    if (server_find(l->core, &l->server, &l->home.endpoint, error, sizeof(error)) &&
        !lock_connect(&l->home, &l->core->resolvers, monotonic_ms() + HOME_MS)) {
        server_lost(l->core, &l->server);
    }
}

static enum lock_answer await_home(struct leader *l, int64_t *ret_number)
{
    return lock_await(&l->home, monotonic_ms() + HOME_MS, ret_number);
}

static enum lock_answer give_back(struct leader *l)
{
    int64_t ignored;
    connect_home(l);
    lock_ask_release(&l->home, &l->home_lock);
    enum lock_answer answer = await_home(l, &ignored);
    l->keeps = answer == LOCK_UNKNOWN;
    redlock_release(&l->others);
    return answer;
}

static void step_down(struct leader *l, enum lock_answer why)
{
    leader_publish(l, 0, 0);
    core_notice(l->core, STORAGE_LEADER_LOST, lock_answer_text(why));
}

/* Make the keys and tokens.  The servers of --lock-redis may serve several installations of tallyd,
 * each with its own data, so a hash of the secret is part of the key there. */
static void name_locks(struct leader *l)
{
    const struct secret *secret = atomic_load(&l->core->secret);
    const char *tag = l->core->partitions.tag[0];
    unsigned char hash[16] = {0};
    char suffix[1 + 2 * sizeof(hash) + 1] = ":";
    if (secret != NULL) {
        crypto_generichash(hash, sizeof(hash), secret->bytes, sizeof(secret->bytes), NULL, 0);
    }
    sodium_bin2hex(suffix + 1, sizeof(suffix) - 1, hash, sizeof(hash));
    key_fixed(&l->home_lock.key, tag, "lock", SLICE(""));
    key_fixed(&l->others.lock.key, tag, "lock", slice_of(suffix));
    key_fixed(&l->fence, tag, "fence", SLICE(""));
    key_fixed(&l->wish_key, tag, "wish", SLICE(""));
    l->home_lock.lease_ms = l->others.lock.lease_ms = LOCK_LEASE_MS;
    lock_draw(&l->home_lock, l->name);
    memcpy(l->others.lock.token, l->home_lock.token, sizeof(l->home_lock.token));
}

/* Tell once that too few servers answer, and once that enough of them answer again. */
static void tell_of_quorum(struct leader *l)
{
    char away[1024];
    bool no_quorum = !redlock_can_lock(&l->others);
    if (no_quorum != l->no_quorum) {
        l->no_quorum = no_quorum;
        redlock_say_away(&l->others, away, sizeof(away));
        core_notice(l->core, no_quorum ? STORAGE_LOCKS_AWAY : STORAGE_LOCKS_BACK, away);
    }
}

static void leader_acquire(struct leader *l)
{
    int64_t number = 0;
    pthread_mutex_lock(&l->lock);
    int64_t floor = l->floor;
    pthread_mutex_unlock(&l->lock);
    if (l->keeps && give_back(l) == LOCK_UNKNOWN) { /* a new token would await the old one's end */
        l->next_ms = monotonic_ms() + lock_retry_ms(randombytes_random());
        return;
    }
    name_locks(l);
    int64_t asked_ms = monotonic_ms();
    enum lock_answer others = redlock_acquire(&l->others, &number);
    tell_of_quorum(l);
    if (others != LOCK_MINE) {
        l->tries++;
        /* Votes may have been split: try again soon.  After some tries another leader has it. */
        l->next_ms = monotonic_ms() + lock_retry_ms(randombytes_random()) +
                     (l->tries < QUICK_TRIES ? 0 : number);
        return;
    }
    l->tries = 0;
    connect_home(l);
    lock_ask_acquire(&l->home, &l->home_lock, &l->fence, floor);
    enum lock_answer answer = await_home(l, &number);
    l->keeps = answer != LOCK_OTHERS;
    int64_t until_ms = lock_until_ms(asked_ms, LOCK_LEASE_MS);
    if (answer == LOCK_MINE && monotonic_ms() < until_ms) {
        l->next_ms = asked_ms + LOCK_RENEW_MS;
        leader_publish(l, number, until_ms);
        core_notice(l->core, STORAGE_LEADING, "");
        return;
    }
    if (answer == LOCK_OTHERS) { /* @number: how long its lease has */
        redlock_release(&l->others);
        l->next_ms = monotonic_ms() + (number < LOCK_LEASE_MS ? number : LOCK_LEASE_MS) +
                     ACQUIRE_MIN_MS + (int64_t)randombytes_uniform(ACQUIRE_JITTER);
        return;
    }
    (void)give_back(l); /* the lock may have been taken although no answer said so */
    l->next_ms = monotonic_ms() + lock_retry_ms(randombytes_random());
}

static void leader_renew(struct leader *l, int64_t token, int64_t until_ms)
{
    int64_t number = 0;
    int64_t asked_ms = monotonic_ms();
    enum lock_answer others = redlock_renew(&l->others);
    tell_of_quorum(l);
    connect_home(l);
    lock_ask_renew(&l->home, &l->home_lock, &l->wish_key);
    enum lock_answer home = await_home(l, &number);
    enum lock_answer answer = home != LOCK_MINE ? home : others;
    if (answer == LOCK_UNKNOWN) {
        l->next_ms = monotonic_ms() + AGAIN_MS;
        l->next_ms = l->next_ms > until_ms ? until_ms : l->next_ms;
        return;
    }
    if (answer != LOCK_MINE) {
        step_down(l, answer);
        (void)give_back(l);
        l->next_ms = monotonic_ms();
        return;
    }
    l->next_ms = asked_ms + LOCK_RENEW_MS;
    leader_publish(l, token, lock_until_ms(asked_ms, LOCK_LEASE_MS));
    if (number == LOCK_RENEWED_WISHED) {
        pthread_mutex_lock(&l->lock);
        l->wish = true;
        pthread_mutex_unlock(&l->lock);
        wake_up(&l->core->rollup_wake);
    }
}

/* One look at the lock. */
static void leader_look(struct leader *l)
{
    struct core *core = l->core;
    int64_t now_ms = monotonic_ms();
    pthread_mutex_lock(&l->lock);
    int64_t token = l->token;
    int64_t until_ms = l->until_ms;
    bool outranked = is_outranked(l);
    pthread_mutex_unlock(&l->lock);
    if (token != 0 && now_ms >= until_ms) {
        step_down(l, LOCK_UNKNOWN);
        l->next_ms = now_ms;
    } else if (outranked || (token != 0 && atomic_load(&core->settings_differ))) {
        leader_publish(l, 0, 0);
        core_notice(core, STORAGE_LEADER_LOST, lock_answer_text(give_back(l)));
        l->next_ms = now_ms;
    } else if (token != 0 && now_ms >= l->next_ms) {
        leader_renew(l, token, until_ms);
    } else if (token == 0 && now_ms >= l->next_ms) {
        bool fit = atomic_load(&core->ready) && !atomic_load(&core->settings_differ);
        l->next_ms = now_ms + NOT_READY_MS;
        if (fit) {
            leader_acquire(l);
        }
    }
}

/* ---- the thread ---- */

/* Sleep until @at_ms or until a member has changed.  False: the thread must stop. */
static bool sleep_until(struct leader *l, int64_t at_ms)
{
    pthread_mutex_lock(&l->lock);
    while (!l->stop && !l->nudged && !is_outranked(l) && monotonic_ms() < at_ms) {
        cond_wait_until_ms(&l->changed, &l->lock, at_ms);
    }
    l->nudged = false;
    bool go_on = !l->stop;
    pthread_mutex_unlock(&l->lock);
    return go_on;
}

static void *leader_main(void *argument)
{
    struct leader *l = argument;
    int64_t at_ms = 0;
    set_look(l);
    while (sleep_until(l, at_ms)) {
        leader_look(l);
        at_ms = l->next_ms;
        int64_t chore_ms = do_chore(l);
        at_ms = chore_ms < at_ms ? chore_ms : at_ms;
        pthread_mutex_lock(&l->lock);
        at_ms = l->token != 0 && l->until_ms < at_ms ? l->until_ms : at_ms;
        pthread_mutex_unlock(&l->lock);
    }
    if (l->keeps) {
        leader_publish(l, 0, 0);
        (void)give_back(l);
    }
    lock_disconnect(&l->home);
    redlock_close(&l->others);
    return NULL;
}

/* Make a leader without its thread.  NULL: out of memory. */
static struct leader *leader_new(struct core *core)
{
    struct leader *l = calloc(1, sizeof(*l));
    if (l == NULL) {
        return NULL;
    }
    l->core = core;
    mutex_init(&l->lock);
    mutex_init(&l->chore_lock);
    cond_init(&l->changed);
    return l;
}

static void leader_free(struct leader *l)
{
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->chore_lock);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

struct leader *leader_start(struct core *core, const char *lock_urls, const char **ret_error)
{
    struct leader *l = leader_new(core);
    const char *error = NULL;
    char host[64] = "";
    if (l == NULL) {
        *ret_error = "out of memory";
        return NULL;
    }
    (void)gethostname(host, sizeof(host) - 1);
    (void)snprintf(l->name, sizeof(l->name), "%s:%ld", host, (long)getpid());
    if (!redlock_init(&l->others, lock_urls, &core->resolvers)) {
        error = "the lock servers are not URLs of Redis with commas between";
    } else if (pthread_create(&l->thread, NULL, leader_main, l) != 0) {
        error = "threads could not be started";
    }
    if (error == NULL) {
        return l;
    }
    *ret_error = error;
    leader_free(l);
    return NULL;
}

void leader_stop(struct leader *l)
{
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_signal(&l->changed);
    pthread_mutex_unlock(&l->lock);
    pthread_join(l->thread, NULL);
    leader_free(l);
}
