#include "storage/limit/funnel.h"

#include <sodium.h>
#include <stdlib.h>

#include "storage/base/index.h"

#define FUNNELS_MAX 100000 /* funnels of the table */
#define FORGET_US   60000000
#define FORGET_STEP 16 /* funnels that a tick looks at */

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

void funnel_use(struct guard *g, struct funnel *f, int64_t now_us)
{
    f->used_us = now_us;
    if (f != g->newest) {
        unlink_use(g, f);
        link_newest(g, f);
    }
}

static bool is_free(const struct funnel *f)
{
    return f->left == 0 && !f->asking && f->waiting.first == NULL;
}

static void forget_funnel(struct guard *g, struct funnel *f)
{
    struct funnel **at = &g->heads[f->hash % FUNNEL_HEADS];
    while (*at != f) {
        at = &(*at)->next;
    }
    *at = f->next;
    unlink_use(g, f);
    g->n--;
    free(f);
}

/* Write what stands for @who in Redis into f->id.  An address is hashed, because none may lie in
 * Redis.  False: Redis was never seen, so there is no key for the hash. */
static bool name_funnel(const struct guard *g, struct slice who, struct funnel *f)
{
    if (g->core->config.guard_by != GUARD_IP) {
        f->id_n = who.n < sizeof(f->id) ? who.n : sizeof(f->id);
        memcpy(f->id, who.n > 0 ? who.p : "", f->id_n);
        return true;
    }
    const struct identity_keys keys = {.secret = atomic_load(&g->core->secret)};
    struct event event = {.address.len = (uint8_t)who.n};
    struct address_id id;
    if (keys.secret == NULL || who.n > sizeof(event.address.bytes)) {
        return false;
    }
    memcpy(event.address.bytes, who.n > 0 ? who.p : "", who.n);
    if (identity_address(&keys, &event, &id)) {
        (void)sodium_bin2hex(f->id, sizeof(f->id), id.bytes, sizeof(id.bytes));
        f->id_n = 2 * sizeof(id.bytes);
    }
    return true;
}

static uint64_t hash_of(struct slice who)
{
    return page_hash(SLICE("rl"), who);
}

/* The funnel of @who, whose hash is @hash; NULL: there is none. */
static struct funnel *look_up(const struct guard *g, struct slice who, uint64_t hash)
{
    struct funnel *f = g->heads[hash % FUNNEL_HEADS];
    while (f != NULL && !(f->hash == hash && slice_equal((struct slice){f->who, f->who_n}, who))) {
        f = f->next;
    }
    return f;
}

struct funnel *funnel_find(struct guard *g, struct slice who, int64_t now_us)
{
    uint64_t hash = hash_of(who);
    struct funnel **head = &g->heads[hash % FUNNEL_HEADS];
    struct funnel *known = look_up(g, who, hash);
    if (known != NULL) {
        funnel_use(g, known, now_us);
        return known;
    }
    if (g->n == FUNNELS_MAX) {
        if (!is_free(g->oldest)) {
            return NULL;
        }
        forget_funnel(g, g->oldest);
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

const struct funnel *funnel_known(const struct guard *g, struct slice who)
{
    return look_up(g, who, hash_of(who));
}

void funnel_forget_old(struct guard *g, int64_t now_us)
{
    struct funnel *f = g->oldest;
    for (int i = 0; i < FORGET_STEP && f != NULL; i++) {
        struct funnel *newer = f->newer;
        if (!is_free(f) || now_us - f->used_us < FORGET_US) {
            return;
        }
        forget_funnel(g, f);
        f = newer;
    }
}

int64_t funnel_forget_ms(const struct guard *g)
{
    return g->oldest == NULL ? INT64_MAX : (g->oldest->used_us + FORGET_US) / 1000;
}

/* ---- what is known of a funnel ---- */

static int64_t debt_us(const struct funnel *f, int64_t now_us)
{
    return f->full_us > now_us ? f->full_us - now_us : 0;
}

int64_t funnel_wait_us(const struct guard *g, const struct funnel *f, int64_t n, int64_t now_us)
{
    double room_us = (double)(g->capacity - (n - f->left)) * g->interval_us;
    double wait = (double)debt_us(f, now_us) - room_us;
    int64_t hold = f->hold_until_us - now_us;
    int64_t longer = wait > 0 ? (int64_t)wait + 1 : 0;
    return hold > longer ? hold : longer;
}

void funnel_describe(
    const struct guard *g, const struct funnel *f, int64_t now_us, struct limit_state *ret)
{
    int64_t debt = debt_us(f, now_us) - (int64_t)((double)f->left * g->interval_us);
    int64_t remaining =
        g->capacity - (int64_t)((double)(debt > 0 ? debt : 0) / g->interval_us + 0.999);
    ret->reset_us = debt > 0 ? debt : 0;
    ret->remaining = remaining < 0 ? 0 : remaining;
}

enum guard_verdict funnel_judge(
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
    if (f->known && now_us - f->told_us < FUNNEL_FRESH_US) {
        *ret_retry_us = funnel_wait_us(g, f, n, now_us);
    }
    return *ret_retry_us > 0 ? GUARD_REFUSED : GUARD_ASK;
}

struct storage_job *funnel_take_waiting(struct guard *g, struct funnel *f)
{
    g->n_awaited -= f->waiting.first != NULL;
    return job_queue_take(&f->waiting, SIZE_MAX);
}
