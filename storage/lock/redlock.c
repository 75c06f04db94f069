#include "storage/lock/redlock.h"

#include <stdio.h>
#include <string.h>

#include "storage/base/clock.h"
#include "storage/redis/address.h"

#define DRIFT_MS  2 /* the drift is this and 1 % of the lease */
#define RETRY_MS  200
#define JITTER_MS 200

/* ---- rules ---- */

int64_t lock_until_ms(int64_t asked_ms, int64_t lease_ms)
{
    return asked_ms + lease_ms - (lease_ms / 100 + DRIFT_MS);
}

unsigned redlock_quorum(unsigned n)
{
    return n / 2 + 1;
}

enum lock_answer redlock_judge(unsigned n, unsigned yes, unsigned no)
{
    if (n == 0 || yes >= redlock_quorum(n)) {
        return LOCK_MINE;
    }
    return n - no < redlock_quorum(n) ? LOCK_OTHERS : LOCK_UNKNOWN;
}

int64_t redlock_left_ms(unsigned n, const int64_t *left_ms)
{
    for (unsigned i = 0; i < n; i++) { /* the one that a quorum is not longer than */
        unsigned less = 0;
        unsigned same = 0;
        for (unsigned k = 0; k < n; k++) {
            less += left_ms[k] < left_ms[i];
            same += left_ms[k] == left_ms[i];
        }
        if (less < redlock_quorum(n) && less + same >= redlock_quorum(n)) {
            return left_ms[i];
        }
    }
    return 0;
}

int64_t lock_retry_ms(uint32_t random)
{
    return RETRY_MS + random % (JITTER_MS + 1);
}

/* ---- servers ---- */

bool redlock_init(struct redlock *redlock, const char *urls, struct resolvers *resolvers)
{
    *redlock = (struct redlock){.resolvers = resolvers};
    while (*urls != '\0') {
        char url[LOCK_URL_SIZE];
        size_t n = strcspn(urls, ",");
        if (n >= sizeof(url) || redlock->n == LOCK_SERVERS_MAX) {
            return false;
        }
        memcpy(url, urls, n);
        url[n] = '\0';
        if (!redis_endpoint_parse(url, &redlock->servers[redlock->n].endpoint) ||
            (urls[n] == ',' && urls[n + 1] == '\0')) {
            return false;
        }
        redlock->n++;
        urls += urls[n] == ',' ? n + 1 : n;
    }
    return true;
}

void redlock_close(struct redlock *redlock)
{
    for (unsigned i = 0; i < redlock->n; i++) {
        lock_disconnect(&redlock->servers[i]);
    }
}

/* Connect all servers, each within its own time: a server that is away must not use up the others'
 * time. */
static void connect_all(struct redlock *redlock)
{
    for (unsigned i = 0; i < redlock->n; i++) {
        (void)lock_connect(
            &redlock->servers[i], redlock->resolvers, monotonic_ms() + REDLOCK_SERVER_MS);
    }
}

/* Await the answers of all servers.  @ret_left_ms, by server: how long another process has the
 * lock. */
static enum lock_answer await_all(struct redlock *redlock, int64_t ret_left_ms[LOCK_SERVERS_MAX])
{
    int64_t deadline_ms = monotonic_ms() + REDLOCK_SERVER_MS;
    unsigned yes = 0;
    unsigned no = 0;
    for (unsigned i = 0; i < redlock->n; i++) {
        int64_t number;
        int64_t least_ms =
            monotonic_ms() + 5; /* for answers that are here, behind one that is not */
        switch (lock_await(
            &redlock->servers[i], least_ms > deadline_ms ? least_ms : deadline_ms, &number)) {
        case LOCK_MINE:
            yes++;
            break;
        case LOCK_OTHERS:
            ret_left_ms[i] = number;
            no++;
            break;
        case LOCK_GONE:
            no++;
            break;
        case LOCK_UNKNOWN:
            break;
        }
    }
    return redlock_judge(redlock->n, yes, no);
}

enum lock_answer redlock_acquire(struct redlock *redlock, int64_t *ret_left_ms)
{
    int64_t left_ms[LOCK_SERVERS_MAX] = {0};
    connect_all(redlock);
    for (unsigned i = 0; i < redlock->n; i++) {
        lock_ask_acquire(&redlock->servers[i], &redlock->lock, NULL, 0);
    }
    enum lock_answer answer = await_all(redlock, left_ms);
    *ret_left_ms = redlock_left_ms(redlock->n, left_ms);
    if (answer != LOCK_MINE) {
        redlock_release(redlock);
    }
    return answer;
}

enum lock_answer redlock_renew(struct redlock *redlock)
{
    int64_t left_ms[LOCK_SERVERS_MAX];
    connect_all(redlock);
    for (unsigned i = 0; i < redlock->n; i++) {
        lock_ask_renew(&redlock->servers[i], &redlock->lock, NULL);
    }
    return await_all(redlock, left_ms);
}

void redlock_release(struct redlock *redlock)
{
    int64_t left_ms[LOCK_SERVERS_MAX];
    connect_all(redlock); /* also servers that did not answer: they may have locked all the same */
    for (unsigned i = 0; i < redlock->n; i++) {
        lock_ask_release(&redlock->servers[i], &redlock->lock);
    }
    (void)await_all(redlock, left_ms);
}

static bool has_answered(const struct lock_server *server)
{
    return server->why[0] == '\0';
}

bool redlock_can_lock(const struct redlock *redlock)
{
    unsigned answered = 0;
    for (unsigned i = 0; i < redlock->n; i++) {
        answered += has_answered(&redlock->servers[i]);
    }
    return redlock->n == 0 || answered >= redlock_quorum(redlock->n);
}

void redlock_say_away(const struct redlock *redlock, char *text, size_t size)
{
    text[0] = '\0';
    for (unsigned i = 0; i < redlock->n; i++) {
        const struct lock_server *server = &redlock->servers[i];
        char name[ADDRESS_TEXT_SIZE];
        size_t n = strlen(text);
        if (has_answered(server)) {
            continue;
        }
        redis_address_print(&server->endpoint.address, name, sizeof(name));
        (void)snprintf(text + n, size - n, "%s%s: %s", n > 0 ? "; " : "", name, server->why);
    }
}
