#include "storage/rollup.h"

#include <sodium.h>
#include <stdlib.h>

#include "storage/key.h"
#include "storage/rollup_pass.h"
#include "storage/session.h"

#define LEASE_MS     10000
#define RENEW_MS     (LEASE_MS / 3)
#define CONNECT_MS   2000
#define RETRY_MS     1000 /* after a failure, or while somebody else leads */
#define SLEEP_MAX_MS (3600 * 1000)

struct rollup {
    struct core *core;
    pthread_t thread;
    struct session session;
    char token[33];
    int64_t fencing_token;
    int64_t renewed_ms; /* when the lease was last known to be ours; 0: it is not */
};

/* ---- the lock ---- */

static bool ask(struct rollup *r, struct buffer *b, const struct reply **ret)
{
    bool ok = redis_queue(r->session.redis, b) &&
              redis_await(r->session.redis, monotonic_ms() + CONNECT_MS, ret) == REDIS_OK_STATUS;
    buffer_release(b);
    if (!ok) {
        session_close(&r->session);
        r->renewed_ms = 0;
    }
    return ok;
}

static bool acquire(struct rollup *r)
{
    unsigned char bytes[16];
    const struct reply *reply = NULL;
    struct key key;
    struct buffer b;
    randombytes_buf(bytes, sizeof(bytes));
    sodium_bin2hex(r->token, sizeof(r->token), bytes, sizeof(bytes));
    buffer_init(&b);
    key_fixed(&key, r->core->partitions.tag[0], "lock", SLICE(""));
    resp_head(&b, 6);
    resp_text(&b, "SET");
    resp_word(&b, key.p, key.n);
    resp_text(&b, r->token);
    resp_text(&b, "NX");
    resp_text(&b, "PX");
    resp_decimal(&b, LEASE_MS);
    int64_t asked_ms = monotonic_ms();
    if (!ask(r, &b, &reply) || reply->type != REPLY_STATUS) {
        return false;
    }
    key_fixed(&key, r->core->partitions.tag[0], "fence", SLICE(""));
    buffer_init(&b);
    resp_head(&b, 2);
    resp_text(&b, "INCR");
    resp_word(&b, key.p, key.n);
    if (!ask(r, &b, &reply) || reply->type != REPLY_INTEGER) {
        return false;
    }
    r->fencing_token = reply->integer;
    r->renewed_ms = asked_ms;
    atomic_store(&r->core->stats.rollup_leader, 1);
    return true;
}

/* The lock's scripts: one key, the token, and for renewing the lease. */
static bool lock_script(struct rollup *r, enum script script)
{
    const struct reply *reply = NULL;
    struct key key;
    struct buffer b;
    buffer_init(&b);
    key_fixed(&key, r->core->partitions.tag[0], "lock", SLICE(""));
    script_head(&b, &r->session.scripts, script, 1, script == SCRIPT_RENEW ? 2 : 1);
    resp_word(&b, key.p, key.n);
    resp_text(&b, r->token);
    if (script == SCRIPT_RENEW) {
        resp_decimal(&b, LEASE_MS);
    }
    return ask(r, &b, &reply) && reply->type == REPLY_INTEGER && reply->integer == 1;
}

static void release(struct rollup *r)
{
    if (r->renewed_ms != 0 && r->session.redis != NULL) {
        (void)lock_script(r, SCRIPT_RELEASE);
    }
    r->renewed_ms = 0;
    atomic_store(&r->core->stats.rollup_leader, 0);
}

/* Renews the lease when a third of it is over. */
static bool still_mine(void *data)
{
    struct rollup *r = data;
    int64_t now_ms = monotonic_ms();
    if (atomic_load(&r->core->stopping) || r->session.redis == NULL) {
        return false;
    }
    if (now_ms - r->renewed_ms < RENEW_MS) {
        return true;
    }
    if (!lock_script(r, SCRIPT_RENEW)) {
        return false;
    }
    r->renewed_ms = now_ms;
    return true;
}

/* ---- work ---- */

/* Bring one partition up to date.  False: something is left, try again later. */
static bool roll_partition(struct rollup *r, unsigned partition)
{
    struct rollup_lease lease = {
        .fencing_token = r->fencing_token, .still_mine = still_mine, .data = r};
    unsigned voids = 0;
    while (voids < 2 && still_mine(r)) {
        switch (rollup_pass(r->core, &r->session, partition, &lease)) {
        case PASS_NOTHING:
            return true;
        case PASS_DONE:
            voids = 0;
            break;
        case PASS_VOID: /* once is somebody's good right; twice is worth a pause */
            voids++;
            break;
        case PASS_LOST:
            session_close(&r->session);
            return false;
        case PASS_FAILED:
            return false;
        }
    }
    return false;
}

/* Everything that is due, as the leader.  False: try again soon. */
static bool roll(struct rollup *r)
{
    char error[160];
    bool ok = true;
    if (!atomic_load(&r->core->ready)) {
        return false;
    }
    if (r->session.redis == NULL &&
        !session_open(&r->session, r->core, monotonic_ms() + CONNECT_MS, error, sizeof(error))) {
        return false;
    }
    if (!acquire(r)) {
        return false;
    }
    for (unsigned p = 0; r->session.redis != NULL && p < r->core->partitions.n; p++) {
        ok = roll_partition(r, p) && ok;
    }
    ok = ok && r->session.redis != NULL;
    release(r);
    return ok;
}

/* Milliseconds until the next pass is due, by what is known of the partitions. */
static int64_t due_in_ms(struct core *core)
{
    int64_t now_ms = redis_clock_ms(&core->clock);
    int64_t due_ms = now_ms + SLEEP_MAX_MS;
    if (now_ms == 0) {
        return RETRY_MS;
    }
    for (unsigned p = 0; p < core->partitions.n; p++) {
        struct partition_view view = core_view(core, p);
        int64_t at_ms = rollup_due_s(&core->sites, &view.state) * 1000;
        due_ms = at_ms < due_ms ? at_ms : due_ms;
    }
    return due_ms > now_ms ? due_ms - now_ms : 0;
}

static void sleep_ms(struct core *core, int64_t ms)
{
    int64_t until_ms = monotonic_ms() + ms;
    struct timespec until = {.tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000};
    pthread_mutex_lock(&core->wake_lock);
    while (!core->wake_rollup && !atomic_load(&core->stopping) && monotonic_ms() < until_ms) {
        (void)pthread_cond_timedwait(&core->wake, &core->wake_lock, &until);
    }
    core->wake_rollup = false;
    pthread_mutex_unlock(&core->wake_lock);
}

static void *rollup_main(void *argument)
{
    struct rollup *r = argument;
    bool left = true; /* a pass may have been left open, by us or by somebody who is gone */
    while (!atomic_load(&r->core->stopping)) {
        int64_t wait_ms = left ? 0 : due_in_ms(r->core);
        if (wait_ms == 0) {
            left = !roll(r);
            wait_ms = left ? RETRY_MS : due_in_ms(r->core);
            wait_ms = wait_ms == 0 ? RETRY_MS : wait_ms;
        }
        sleep_ms(r->core, wait_ms);
    }
    release(r);
    session_close(&r->session);
    return NULL;
}

struct rollup *rollup_start(struct core *core)
{
    struct rollup *r = calloc(1, sizeof(*r));
    if (r != NULL) {
        r->core = core;
        if (pthread_create(&r->thread, NULL, rollup_main, r) != 0) {
            free(r);
            r = NULL;
        }
    }
    return r;
}

void rollup_stop(struct rollup *r)
{
    core_wake_rollup(r->core); /* core->stopping is set */
    pthread_join(r->thread, NULL);
    free(r);
}
