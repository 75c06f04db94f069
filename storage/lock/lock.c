#include "storage/lock/lock.h"

#include <stdio.h>

#include "storage/base/random_id.h"
#include "storage/redis/connect.h"
#include "storage/redis/resp.h"

#define RANDOM_TEXT 32

void lock_draw(struct lock *lock, const char *name)
{
    char text[RANDOM_TEXT + 1];
    random_id(text, sizeof(text));
    (void)snprintf(lock->token, sizeof(lock->token), "%s %s", text, name);
}

struct slice lock_holder(struct slice token)
{
    if (token.n <= RANDOM_TEXT || token.p[RANDOM_TEXT] != ' ') {
        return token;
    }
    return (struct slice){token.p + RANDOM_TEXT + 1, token.n - RANDOM_TEXT - 1};
}

bool lock_connect(struct lock_server *server, struct resolvers *resolvers, int64_t deadline_ms)
{
    if (server->redis != NULL) {
        return true;
    }
    server->redis = redis_connect(
        &server->endpoint, resolvers, &server->look, deadline_ms, server->why, sizeof(server->why));
    if (server->redis != NULL && !scripts_load(server->redis, deadline_ms, &server->scripts,
                                     server->why, sizeof(server->why))) {
        lock_disconnect(server);
    }
    return server->redis != NULL;
}

void lock_disconnect(struct lock_server *server)
{
    redis_close(server->redis);
    server->redis = NULL;
    server->asked = false;
}

/* ---- questions ---- */

/* Give up a server that has not answered.  An acquire that the server still gets would take the
 * lock for no process. */
static enum lock_answer lock_unknown(struct lock_server *server, const char *why)
{
    (void)snprintf(server->why, sizeof(server->why), "%s", why);
    redis_abandon(server->redis);
    server->redis = NULL;
    server->asked = false;
    return LOCK_UNKNOWN;
}

/* Call @script about @lock, and about the key @second unless that is NULL, with the lock's token
 * and @n_numbers numbers. */
static void lock_ask(struct lock_server *server, enum script script, const struct lock *lock,
    const struct key *second, const int64_t *numbers, size_t n_numbers)
{
    struct buffer b;
    bool left = false;
    if (server->redis == NULL) {
        return;
    }
    buffer_init(&b);
    script_head(&b, &server->scripts, script, second == NULL ? 1 : 2, 1 + n_numbers);
    resp_word(&b, lock->key.p, lock->key.n);
    if (second != NULL) {
        resp_word(&b, second->p, second->n);
    }
    resp_text(&b, lock->token);
    for (size_t i = 0; i < n_numbers; i++) {
        resp_decimal(&b, numbers[i]);
    }
    server->asked =
        redis_queue(server->redis, &b) && redis_send(server->redis, &left) == REDIS_OK_STATUS;
    if (!server->asked) {
        (void)lock_unknown(server, redis_status_text(REDIS_LOST));
    }
    buffer_release(&b);
}

void lock_ask_acquire(
    struct lock_server *server, const struct lock *lock, const struct key *fence, int64_t floor)
{
    lock_ask(server, SCRIPT_ACQUIRE, lock, fence, (const int64_t[]){lock->lease_ms, floor}, 2);
}

void lock_ask_renew(struct lock_server *server, const struct lock *lock, const struct key *wish)
{
    lock_ask(server, SCRIPT_RENEW, lock, wish, &lock->lease_ms, 1);
}

void lock_ask_release(struct lock_server *server, const struct lock *lock)
{
    lock_ask(server, SCRIPT_RELEASE, lock, NULL, NULL, 0);
}

/* ---- answers ---- */

enum lock_answer lock_await(struct lock_server *server, int64_t deadline_ms, int64_t *ret_number)
{
    const struct reply *reply = NULL;
    *ret_number = 0;
    if (!server->asked) {
        return LOCK_UNKNOWN;
    }
    server->asked = false;
    enum redis_status status = redis_await(server->redis, deadline_ms, &reply);
    if (status != REDIS_OK_STATUS) {
        return lock_unknown(server, redis_status_text(status));
    }
    if (reply->type == REPLY_ERROR && server->refused != NULL) {
        server->refused(server->refused_data, reply);
    }
    if (reply->type != REPLY_INTEGER) { /* after NOSCRIPT, READONLY and others connect anew */
        return lock_unknown(server, reply_complaint(reply));
    }
    server->why[0] = '\0';
    if (reply->integer > 0) {
        *ret_number = reply->integer;
        return LOCK_MINE;
    }
    *ret_number = -reply->integer;
    return reply->integer == -1 ? LOCK_GONE : LOCK_OTHERS;
}

const char *lock_answer_text(enum lock_answer answer)
{
    switch (answer) {
    case LOCK_MINE:
        return "given back";
    case LOCK_OTHERS:
        return "another process has it";
    case LOCK_GONE:
        return "it ran out, or Redis lost it";
    case LOCK_UNKNOWN:
        return "not renewed in time";
    }
    return "";
}
