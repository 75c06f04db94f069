#include "storage/limit/lease.h"

#include "storage/base/clock.h"

#define PACE_US     50000  /* mean pause after Redis had nothing left */
#define IDLE_US     250000 /* a lease is idle when nothing was taken from it for so long */
#define PREFETCH_MS 2000   /* deadline of a lease for which no request waits */
#define LEASE_SHARE 32     /* a lease is 1/32 of what passes at once, or what LEASE_US brings */
#define LEASE_US    50000  /* a lease is what comes back in this time, if that is more */

static const char *const kinds[] = {
    [GUARD_OFF] = "", [GUARD_TOKEN] = "token", [GUARD_IP] = "ip", [GUARD_SITE] = "site"};

void lease_set_limit(struct guard *g, const struct limit *limit)
{
    g->limit = *limit;
    g->capacity = limit_capacity(limit);
    g->interval_us = (double)limit->period_us / (double)limit->count;
    double in_time = (double)LEASE_US / g->interval_us;
    g->lease = g->capacity / LEASE_SHARE;
    g->lease = in_time > (double)g->lease ? (int64_t)in_time : g->lease;
    g->lease = g->lease > g->capacity / 2 ? g->capacity / 2 : g->lease;
    g->lease = g->lease < 1 ? 1 : g->lease;
    /* A pause is much shorter than the time in which the whole funnel comes back.  Otherwise the
     * funnel would be full before Redis is asked again, and what comes back then is lost. */
    double part_us = (double)g->capacity * g->interval_us / 8;
    g->pace_us = part_us < PACE_US ? (int64_t)part_us : PACE_US;
}

bool lease_ask(
    struct guard *g, struct funnel *f, int64_t need, int64_t deadline_ms, enum storage_err *ret_err)
{
    int64_t missing = g->lease - f->left;
    f->lease = (struct storage_job){
        .op = STORAGE_LIMIT, .deadline_ms = deadline_ms, .done = g->on_lease, .data = f, .cost = 1};
    f->lease.u.limit = (struct limit_job){.limit = g->limit,
        .policy = slice_of(kinds[g->core->config.guard_by]),
        .key = {f->id, f->id_n},
        .guard = true,
        /* Up to a lease, Redis grants what there is: less still serves smaller requests. */
        .need = need > g->lease || need < 0 ? need : 0,
        .want = need > missing || need < 0 ? need : missing};
    f->asking = g->submit(g->submit_data, &f->lease, ret_err);
    if (f->asking) {
        atomic_fetch_add(&g->core->stats.guard_leases, 1);
    }
    return f->asking;
}

void lease_add(struct guard *g, struct funnel *f, int64_t n)
{
    g->n_holding -= f->left > 0;
    f->left += n;
    g->n_holding += f->left > 0;
}

void lease_prefetch(struct guard *g, struct funnel *f, int64_t now_us)
{
    enum storage_err ignored;
    if (!f->asking && f->known && f->left <= g->lease / 2 && g->lease > 1 &&
        funnel_wait_us(g, f, f->left + 1, now_us) == 0) {
        (void)lease_ask(g, f, 0, now_us / 1000 + PREFETCH_MS, &ignored);
    }
}

/* A random pause: half to one and a half times the mean. */
static int64_t draw_pause_us(struct guard *g)
{
    g->dice ^= g->dice << 13; /* xorshift64 (Marsaglia 2003) */
    g->dice ^= g->dice >> 7;
    g->dice ^= g->dice << 17;
    return g->pace_us / 2 + (int64_t)(g->dice % (uint64_t)(g->pace_us + 1));
}

void lease_take(struct guard *g, struct funnel *f, const struct limit_job *lease)
{
    const struct limit_state *state = &lease->state;
    int64_t now_us = monotonic_us();
    f->known = true;
    f->told_us = now_us;
    f->full_us = now_us + state->reset_us;
    if (lease->need >= 0) { /* its idle time begins now: the request may wait for other leases */
        funnel_use(g, f, now_us);
    }
    lease_add(g, f, state->granted);
    f->hold_until_us = state->remaining == 0 ? now_us + draw_pause_us(g) : 0;
}

/* ---- idle leases ---- */

void lease_give_back(struct guard *g, struct funnel *f, int64_t now_us)
{
    enum storage_err ignored;
    int64_t n = f->left;
    lease_add(g, f, -n);
    /* A lease that cannot be sent back is lost. */
    (void)lease_ask(g, f, -n, now_us / 1000 + PREFETCH_MS, &ignored);
}

/* Give back the leases that are idle.  With the lock held. */
static void lease_give_back_idle(struct guard *g, int64_t now_us)
{
    size_t holding = g->n_holding;
    for (struct funnel *f = g->oldest; f != NULL && holding > 0; f = f->newer) {
        if (now_us - f->used_us < IDLE_US) {
            break; /* all newer funnels were used later */
        }
        holding -= f->left > 0;
        if (f->left > 0 && !f->asking) {
            lease_give_back(g, f, now_us);
        }
    }
}

int64_t lease_tick(struct guard *g, int64_t now_ms)
{
    pthread_mutex_lock(&g->lock);
    if (now_ms >= g->tick_ms) {
        funnel_forget_old(g, now_ms * 1000);
        lease_give_back_idle(g, now_ms * 1000);
        g->tick_ms = now_ms + IDLE_US / 1000 / 2;
    }
    int64_t again_ms = g->tick_ms;
    int64_t forget_ms = funnel_forget_ms(g);
    if (g->n_holding == 0 && forget_ms > again_ms) {
        again_ms = forget_ms;
    }
    pthread_mutex_unlock(&g->lock);
    return again_ms;
}
