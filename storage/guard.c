#include "storage/guard.h"

#include <stdlib.h>

#include "storage/index.h"

#define HEADS       16384   /* of the table's chains */
#define FUNNELS_MAX 100000  /* remembered at once */
#define PACE_US     50000   /* about so long nobody asks Redis when it has nothing left */
#define RECHECK_US  1000000 /* what Redis said is believed for so long: others may give back */
#define IDLE_US     250000  /* a lease is idle when nothing was taken from it for so long */
#define FORGET_US   60000000
#define FORGET_STEP 16    /* looked at in a tick */
#define PREFETCH_MS 2000  /* patience with Redis where nobody waits */
#define LEASE_SHARE 32    /* a lease is at most about this part of what passes at once.. */
#define LEASE_US    50000 /* ..or what comes back in this time, if that is more */
#define ID_MAX      64

/* One of those that are limited. */
struct funnel {
    struct guard *guard;
    struct funnel *next;          /* in its chain */
    struct funnel *newer, *older; /* by last use */
    uint64_t hash;
    char id[ID_MAX]; /* in the Redis key */
    size_t id_n;
    bool known;            /* Redis was asked at least once */
    bool asking;           /* lease is under way */
    int64_t left;          /* of the lease */
    int64_t told_us;       /* when Redis said so */
    int64_t full_us;       /* when all will have come back, by what Redis said last */
    int64_t hold_until_us; /* Redis had nothing left: not asked before */
    int64_t used_us;
    struct storage_job lease;
    struct storage_job *first, *last; /* write jobs that wait for it */
    size_t who_n;
    char who[];
};

struct guard {
    struct core *core;
    struct writer *writer;

    pthread_mutex_t lock; /* guards all below, and all funnels */
    struct limit limit;
    int64_t capacity, lease, pace_us;
    double interval_us; /* between two: for estimates only, Redis decides */
    struct funnel *heads[HEADS];
    struct funnel *newest, *oldest;
    size_t n;
    size_t n_holding; /* funnels with something left */
    uint64_t dice;
    int64_t tick_ms; /* no tick before */
};

static const char *const kinds[] = {
    [GUARD_OFF] = "", [GUARD_TOKEN] = "token", [GUARD_IP] = "ip", [GUARD_SITE] = "site"};

static void set_limit(struct guard *g, const struct limit *limit)
{
    g->limit = *limit;
    g->capacity = limit_capacity(limit);
    g->interval_us = (double)limit->period_us / (double)limit->count;
    double in_time = (double)LEASE_US / g->interval_us;
    g->lease = g->capacity / LEASE_SHARE;
    g->lease = in_time > (double)g->lease ? (int64_t)in_time : g->lease;
    g->lease = g->lease > g->capacity / 2 ? g->capacity / 2 : g->lease;
    g->lease = g->lease < 1 ? 1 : g->lease;
    /* Much shorter than what fills the funnel, or what comes back in a pause and while Redis is
     * asked would be lost. */
    double part_us = (double)g->capacity * g->interval_us / 8;
    g->pace_us = part_us < PACE_US ? (int64_t)part_us : PACE_US;
}

struct guard *guard_new(struct core *core, struct writer *writer)
{
    struct guard *g = calloc(1, sizeof(*g));
    if (g == NULL) {
        return NULL;
    }
    const struct limit *limit = &core->config.guard_limit;
    g->core = core;
    g->writer = writer;
    set_limit(g, limit);
    g->dice = (uint64_t)monotonic_us() * 2 + 1;
    pthread_mutex_init(&g->lock, NULL);
    return g;
}

void guard_free(struct guard *g)
{
    if (g == NULL) {
        return;
    }
    struct funnel *next;
    for (struct funnel *f = g->newest; f != NULL; f = next) {
        next = f->older;
        free(f);
    }
    pthread_mutex_destroy(&g->lock);
    free(g);
}

/* ---- the table ---- */

static void unlink_use(struct guard *g, struct funnel *f)
{
    if (f == g->newest) {
        g->newest = f->older;
    } else {
        f->newer->older = f->older;
    }
    if (f == g->oldest) {
        g->oldest = f->newer;
    } else {
        f->older->newer = f->newer;
    }
}

static void link_newest(struct guard *g, struct funnel *f)
{
    f->newer = NULL;
    f->older = g->newest;
    *(g->newest != NULL ? &g->newest->newer : &g->oldest) = f;
    g->newest = f;
}

static void use(struct guard *g, struct funnel *f, int64_t now_us)
{
    f->used_us = now_us;
    if (f != g->newest) {
        unlink_use(g, f);
        link_newest(g, f);
    }
}

static bool is_free(const struct funnel *f)
{
    return f->left == 0 && !f->asking && f->first == NULL;
}

static void forget(struct guard *g, struct funnel *f)
{
    struct funnel **at = &g->heads[f->hash % HEADS];
    while (*at != f) {
        at = &(*at)->next;
    }
    *at = f->next;
    unlink_use(g, f);
    g->n--;
    free(f);
}

/* What stands for @who in Redis: an address does not go there as it is.  False: Redis was never
 * seen. */
static bool name_funnel(const struct guard *g, struct slice who, struct funnel *f)
{
    static const char hex[] = "0123456789abcdef";
    if (g->core->config.guard_by != GUARD_IP) {
        f->id_n = who.n < sizeof(f->id) ? who.n : sizeof(f->id);
        memcpy(f->id, who.n > 0 ? who.p : "", f->id_n);
        return true;
    }
    const struct secret *secret = atomic_load(&g->core->secret);
    struct event event = {.address.len = (uint8_t)who.n};
    struct address_id id;
    if (secret == NULL || who.n > sizeof(event.address.bytes)) {
        return false;
    }
    memcpy(event.address.bytes, who.n > 0 ? who.p : "", who.n);
    if (identity_address(secret, &event, &id)) {
        for (size_t i = 0; i < sizeof(id.bytes); i++) {
            f->id[f->id_n++] = hex[id.bytes[i] >> 4];
            f->id[f->id_n++] = hex[id.bytes[i] & 15];
        }
    }
    return true;
}

static uint64_t hash_of(struct slice who)
{
    return page_hash(SLICE("rl"), who);
}

/* NULL: it is not known. */
static struct funnel *look_up(const struct guard *g, struct slice who, uint64_t hash)
{
    struct funnel *f = g->heads[hash % HEADS];
    while (f != NULL && !(f->hash == hash && slice_equal((struct slice){f->who, f->who_n}, who))) {
        f = f->next;
    }
    return f;
}

/* NULL: out of memory, or too many are busy, or Redis was never seen. */
static struct funnel *find(struct guard *g, struct slice who, int64_t now_us)
{
    uint64_t hash = hash_of(who);
    struct funnel **head = &g->heads[hash % HEADS];
    struct funnel *known = look_up(g, who, hash);
    if (known != NULL) {
        use(g, known, now_us);
        return known;
    }
    if (g->n == FUNNELS_MAX) {
        if (!is_free(g->oldest)) {
            return NULL;
        }
        forget(g, g->oldest);
    }
    struct funnel *f = calloc(1, sizeof(*f) + who.n);
    if (f == NULL || !name_funnel(g, who, f)) {
        free(f);
        return NULL;
    }
    f->guard = g;
    f->hash = hash;
    f->who_n = who.n;
    memcpy(f->who, who.n > 0 ? who.p : "", who.n);
    f->next = *head;
    *head = f;
    link_newest(g, f);
    f->used_us = now_us;
    g->n++;
    return f;
}

/* ---- what is known of a funnel ---- */

static int64_t debt_us(const struct funnel *f, int64_t now_us)
{
    return f->full_us > now_us ? f->full_us - now_us : 0;
}

/* How long until @n more than is left here can be had; 0: now, as far as is known. */
static int64_t wait_us(const struct guard *g, const struct funnel *f, int64_t n, int64_t now_us)
{
    double room_us = (double)(g->capacity - (n - f->left)) * g->interval_us;
    double wait = (double)debt_us(f, now_us) - room_us;
    int64_t hold = f->hold_until_us - now_us;
    int64_t longer = wait > 0 ? (int64_t)wait + 1 : 0;
    return hold > longer ? hold : longer;
}

static void describe(
    const struct guard *g, const struct funnel *f, int64_t now_us, struct limit_state *ret)
{
    int64_t debt = debt_us(f, now_us) - (int64_t)((double)f->left * g->interval_us);
    int64_t remaining =
        g->capacity - (int64_t)((double)(debt > 0 ? debt : 0) / g->interval_us + 0.999);
    ret->reset_us = debt > 0 ? debt : 0;
    ret->remaining = remaining < 0 ? 0 : remaining > g->capacity ? g->capacity : remaining;
}

/* What one claim gets; *ret_retry_us where it is refused. */
static enum guard_verdict judge(
    const struct guard *g, const struct funnel *f, int64_t n, int64_t now_us, int64_t *ret_retry_us)
{
    *ret_retry_us = 0;
    if (n > g->capacity) {
        *ret_retry_us = -1;
        return GUARD_REFUSED;
    }
    if (n <= f->left) {
        return GUARD_ADMITTED;
    }
    if (f->known && now_us - f->told_us < RECHECK_US) {
        *ret_retry_us = wait_us(g, f, n, now_us);
    }
    return *ret_retry_us > 0 ? GUARD_REFUSED : GUARD_ASK;
}

/* ---- leases ---- */

static void on_lease(struct storage_job *job);

/* Ask for at least @need, up to a whole lease; negative: give back.  False: it cannot be sent. */
static bool ask(
    struct guard *g, struct funnel *f, int64_t need, int64_t deadline_ms, enum storage_err *ret_err)
{
    int64_t missing = g->lease - f->left;
    f->lease = (struct storage_job){
        .op = STORAGE_LIMIT, .deadline_ms = deadline_ms, .done = on_lease, .data = f, .cost = 1};
    f->lease.u.limit = (struct limit_job){.limit = g->limit,
        .policy = slice_of(kinds[g->core->config.guard_by]),
        .key = {f->id, f->id_n},
        .guard = true,
        /* What is within a lease is taken as far as it is there: it serves smaller requests. */
        .need = need > g->lease || need < 0 ? need : 0,
        .want = need > missing || need < 0 ? need : missing};
    f->asking = writer_submit(g->writer, &f->lease, ret_err);
    if (f->asking) {
        atomic_fetch_add(&g->core->stats.guard_leases, 1);
    }
    return f->asking;
}

static void add_left(struct guard *g, struct funnel *f, int64_t n)
{
    g->n_holding -= f->left > 0;
    f->left += n;
    g->n_holding += f->left > 0;
}

void guard_set_limit(struct guard *g, const struct limit *limit)
{
    pthread_mutex_lock(&g->lock);
    set_limit(g, limit);
    for (struct funnel *f = g->newest; f != NULL; f = f->older) {
        f->told_us -= RECHECK_US; /* Redis said so of the old one */
        f->hold_until_us = 0;
        if (f->left > g->lease) { /* lost: less is admitted, never more */
            add_left(g, f, g->lease - f->left);
        }
    }
    pthread_mutex_unlock(&g->lock);
}

/* Half of the lease is gone: fetch the next one, so that nobody waits for it. */
static void prefetch(struct guard *g, struct funnel *f, int64_t now_us)
{
    enum storage_err ignored;
    if (!f->asking && f->known && f->left <= g->lease / 2 && g->lease > 1 &&
        wait_us(g, f, f->left + 1, now_us) == 0) {
        (void)ask(g, f, 0, now_us / 1000 + PREFETCH_MS, &ignored);
    }
}

/* Half to one and a half times the pace. */
static int64_t draw_pause_us(struct guard *g)
{
    g->dice ^= g->dice << 13; /* xorshift64 (Marsaglia 2003) */
    g->dice ^= g->dice >> 7;
    g->dice ^= g->dice << 17;
    return g->pace_us / 2 + (int64_t)(g->dice % (uint64_t)(g->pace_us + 1));
}

static void take_lease(struct guard *g, struct funnel *f, const struct limit_job *lease)
{
    const struct limit_state *state = &lease->state;
    int64_t now_us = monotonic_us();
    f->known = true;
    f->told_us = now_us;
    f->full_us = now_us + state->reset_us;
    if (lease->need >= 0) { /* it is idle from now on: others of the same request may take longer */
        use(g, f, now_us);
    }
    add_left(g, f, lease->need < 0 || !state->allowed ? 0 : state->granted);
    f->hold_until_us = state->remaining == 0 ? now_us + draw_pause_us(g) : 0;
}

/* ---- judging ---- */

/* The verdict on all claims together: the worst of them.  Under the lock.
 */
static enum guard_verdict judge_all(struct guard *g, const struct guard_claim *claims, size_t n,
    int64_t now_us, struct limit_state *ret_state)
{
    enum guard_verdict verdict = GUARD_ADMITTED;
    *ret_state = (struct limit_state){.allowed = true, .remaining = INT64_MAX};
    for (size_t i = 0; i < n; i++) {
        struct limit_state one = {.allowed = true};
        struct funnel *f = find(g, claims[i].who, now_us);
        if (f == NULL) {
            return GUARD_FAILED;
        }
        enum guard_verdict is = judge(g, f, claims[i].n, now_us, &one.retry_us);
        describe(g, f, now_us, &one);
        one.allowed = is != GUARD_REFUSED;
        bool first = is == GUARD_REFUSED && verdict != GUARD_REFUSED;
        bool later = is == GUARD_REFUSED && verdict == GUARD_REFUSED && ret_state->retry_us >= 0 &&
                     (one.retry_us < 0 || one.retry_us > ret_state->retry_us);
        bool less =
            is != GUARD_REFUSED && verdict != GUARD_REFUSED && one.remaining < ret_state->remaining;
        if (first || later || less) {
            *ret_state = one;
        }
        verdict = is > verdict ? is : verdict;
    }
    return verdict;
}

/* Under the lock. */
static enum guard_verdict take(struct guard *g, const struct guard_claim *claims, size_t n,
    int64_t now_us, struct limit_state *ret_state)
{
    enum guard_verdict verdict = judge_all(g, claims, n, now_us, ret_state);
    int64_t least = INT64_MAX;
    for (size_t i = 0; verdict == GUARD_ADMITTED && i < n; i++) {
        struct funnel *f = find(g, claims[i].who, now_us); /* is there: judge_all found it */
        if (f != NULL) {
            struct limit_state left = {0};
            add_left(g, f, -claims[i].n);
            describe(g, f, now_us, &left); /* with what was just taken */
            if (left.remaining < least) {  /* the tightest of them is told */
                least = left.remaining;
                ret_state->remaining = left.remaining;
                ret_state->reset_us = left.reset_us;
            }
            prefetch(g, f, now_us);
        }
        ret_state->granted += claims[i].n;
    }
    return verdict;
}

enum guard_verdict guard_try(
    struct guard *g, const struct guard_claim *claims, size_t n, struct limit_state *ret_state)
{
    pthread_mutex_lock(&g->lock);
    enum guard_verdict verdict = take(g, claims, n, monotonic_us(), ret_state);
    pthread_mutex_unlock(&g->lock);
    return verdict;
}

bool guard_closed(struct guard *g, struct slice who, struct limit_state *ret_state)
{
    int64_t now_us = monotonic_us();
    *ret_state = (struct limit_state){.allowed = false};
    pthread_mutex_lock(&g->lock);
    struct funnel *f = find(g, who, now_us);
    bool closed = f != NULL && judge(g, f, 1, now_us, &ret_state->retry_us) == GUARD_REFUSED;
    if (closed) {
        describe(g, f, now_us, ret_state);
    }
    pthread_mutex_unlock(&g->lock);
    return closed;
}

void guard_peek(struct guard *g, struct slice who, struct limit_state *ret_state)
{
    pthread_mutex_lock(&g->lock);
    *ret_state = (struct limit_state){.allowed = true, .remaining = g->capacity};
    const struct funnel *f = look_up(g, who, hash_of(who));
    if (f != NULL) {
        describe(g, f, monotonic_us(), ret_state);
    }
    pthread_mutex_unlock(&g->lock);
}

/* ---- jobs that wait ---- */

static void finish(struct storage_job *job, enum storage_err err)
{
    free(job->rows);
    job->rows = NULL;
    job_done(job, err);
}

static void fail_list(struct storage_job *jobs, enum storage_err err)
{
    while (jobs != NULL) {
        struct storage_job *next = jobs->next;
        finish(jobs, err);
        jobs = next;
    }
}

static void park(struct funnel *f, struct storage_job *job)
{
    job->next = NULL;
    *(f->last != NULL ? &f->last->next : &f->first) = job;
    f->last = job;
}

/* Fetch leases for all claims that lack one, at once: of a request for a thousand sites each would
 * wait for the one before.  Under the lock.  Returns the funnel whose answer comes last, on which
 * to wait; NULL: none could be asked, *ret_err says why. */
static struct funnel *ask_all(
    struct guard *g, const struct storage_job *job, int64_t now_us, enum storage_err *ret_err)
{
    const struct write_job *write = &job->u.write;
    struct funnel *last = NULL;
    int64_t ignored;
    *ret_err = STORAGE_NOMEM;
    for (size_t i = 0; i < write->n_claims; i++) {
        const struct guard_claim *claim = &write->claims[i];
        struct funnel *f = find(g, claim->who, now_us);
        if (f != NULL && judge(g, f, claim->n, now_us, &ignored) == GUARD_ASK &&
            (f->asking || ask(g, f, claim->n - f->left, job->deadline_ms, ret_err))) {
            last = f;
        }
    }
    return last;
}

void guard_submit(struct guard *g, struct storage_job *job)
{
    struct write_job *write = &job->u.write;
    enum storage_err err = STORAGE_OK;
    bool parked = false;
    pthread_mutex_lock(&g->lock);
    int64_t now_us = monotonic_us();
    enum guard_verdict verdict = take(g, write->claims, write->n_claims, now_us, &write->guard);
    if (verdict == GUARD_ASK && job->deadline_ms <= now_us / 1000) {
        err = STORAGE_LATE;
    } else if (verdict == GUARD_ASK) {
        struct funnel *last = ask_all(g, job, now_us, &err);
        if (last != NULL) {
            park(last, job);
            parked = true;
        }
    }
    pthread_mutex_unlock(&g->lock);
    if (parked) {
        return;
    }
    if (verdict == GUARD_ADMITTED) {
        (void)writer_submit(g->writer, job, &err);
    } else if (verdict == GUARD_REFUSED) {
        err = STORAGE_LIMITED;
    } else if (verdict == GUARD_FAILED) {
        err = STORAGE_NOMEM;
    }
    if (err != STORAGE_OK) {
        finish(job, err);
    }
}

/* A lease came, or will not: on the writer's thread.  Its jobs are judged anew, in order. */
static void on_lease(struct storage_job *job)
{
    struct funnel *f = job->data;
    struct guard *g = f->guard;
    enum storage_err err = job->err;
    pthread_mutex_lock(&g->lock);
    f->asking = false;
    if (err == STORAGE_OK) {
        take_lease(g, f, &job->u.limit);
    }
    struct storage_job *waiting = f->first;
    f->first = f->last = NULL;
    pthread_mutex_unlock(&g->lock);
    if (err != STORAGE_OK) { /* nothing of the events was sent, whatever became of the lease */
        fail_list(waiting, err == STORAGE_UNKNOWN ? STORAGE_LATE : err);
        return;
    }
    while (waiting != NULL) {
        struct storage_job *next = waiting->next;
        guard_submit(g, waiting);
        waiting = next;
    }
}

/* ---- idle leases ---- */

static void give_back(struct guard *g, struct funnel *f, int64_t now_us)
{
    enum storage_err ignored;
    int64_t n = f->left;
    add_left(g, f, -n);
    (void)ask(g, f, -n, now_us / 1000 + PREFETCH_MS, &ignored); /* lost, if it cannot be sent */
}

static void forget_old(struct guard *g, int64_t now_us)
{
    struct funnel *f = g->oldest;
    for (int i = 0; i < FORGET_STEP && f != NULL; i++) {
        struct funnel *newer = f->newer;
        if (!is_free(f) || now_us - f->used_us < FORGET_US) {
            return;
        }
        forget(g, f);
        f = newer;
    }
}

int64_t guard_tick(void *data, int64_t now_ms)
{
    struct guard *g = data;
    int64_t now_us = now_ms * 1000;
    pthread_mutex_lock(&g->lock);
    if (g->n_holding == 0 || now_ms < g->tick_ms) {
        int64_t when_ms = g->n_holding == 0 ? INT64_MAX : g->tick_ms;
        pthread_mutex_unlock(&g->lock);
        return when_ms;
    }
    forget_old(g, now_us);
    size_t holding = g->n_holding;
    for (struct funnel *f = g->oldest; f != NULL && holding > 0; f = f->newer) {
        if (now_us - f->used_us < IDLE_US) {
            break; /* all newer ones were used since */
        }
        holding -= f->left > 0;
        if (f->left > 0 && !f->asking) {
            give_back(g, f, now_us);
        }
    }
    g->tick_ms = now_ms + IDLE_US / 1000 / 2;
    int64_t again_ms = g->n_holding > 0 ? g->tick_ms : INT64_MAX;
    pthread_mutex_unlock(&g->lock);
    return again_ms;
}

void guard_give_back(struct guard *g)
{
    int64_t now_us = monotonic_us();
    pthread_mutex_lock(&g->lock);
    for (struct funnel *f = g->oldest; f != NULL; f = f->newer) {
        if (f->left > 0 && !f->asking) {
            give_back(g, f, now_us);
        }
    }
    pthread_mutex_unlock(&g->lock);
}
