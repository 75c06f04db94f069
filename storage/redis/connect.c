#include "storage/redis/connect.h"

#include <stdio.h>

#include "storage/base/clock.h"
#include "storage/redis/resp.h"

/* Have the host looked up, and call look() while the resolver works.  False: @address holds the
 * reason as text. */
static bool resolve_host(struct resolver *resolver, const struct redis_look *look,
    int64_t deadline_ms, char address[RESOLVER_ADDRESS_MAX])
{
    for (;;) {
        int64_t until_ms = look->look != NULL ? monotonic_ms() + REDIS_LOOK_MS : deadline_ms;
        until_ms = until_ms < deadline_ms ? until_ms : deadline_ms;
        if (resolver_ask(resolver, until_ms, address)) {
            return true;
        }
        bool looked_up = monotonic_ms() < until_ms; /* the answer is that there is no address */
        if (looked_up || until_ms == deadline_ms || !look->look(look->data)) {
            return false;
        }
    }
}

/* Look the host up, and connect.  NULL: @error says why; if memory is short, @error may be
 * untouched. */
static struct redis *open_address(const struct redis_address *address, struct resolvers *resolvers,
    const struct redis_look *look, int64_t deadline_ms, char *error, size_t error_n)
{
    char numeric[RESOLVER_ADDRESS_MAX];
    if (address->port == 0) {
        return redis_open(address->host, 0, look, deadline_ms, error, error_n);
    }
    struct resolver *resolver = resolvers_get(resolvers, address->host);
    if (resolver == NULL) {
        return NULL;
    }
    if (!resolve_host(resolver, look, deadline_ms, numeric)) {
        (void)snprintf(error, error_n, "%s: %s", address->host, numeric);
        return NULL;
    }
    return redis_open(numeric, address->port, look, deadline_ms, error, error_n);
}

/* Await one reply.  False: there is none, or the reply is an error; @error says why. */
static bool expect_ok(struct redis *redis, int64_t deadline_ms, char *error, size_t error_n)
{
    const struct reply *reply = NULL;
    enum redis_status status = redis_await(redis, deadline_ms, &reply);
    if (status != REDIS_OK_STATUS) {
        (void)snprintf(error, error_n, "%s", redis_status_text(status));
        return false;
    }
    if (reply->type == REPLY_ERROR) {
        (void)snprintf(error, error_n, "%.80s", reply->text.p);
        return false;
    }
    return true;
}

/* Log in if the endpoint has a password, and select its database if that is not 0.  False: @error
 * says why. */
static bool auth_and_select(struct redis *redis, const struct redis_endpoint *endpoint,
    int64_t deadline_ms, char *error, size_t error_n)
{
    const struct redis_login *login = &endpoint->login;
    struct buffer b;
    int replies = 0;
    buffer_init(&b);
    if (login->password[0] != '\0') {
        if (login->user[0] != '\0') {
            resp_command(&b, "AUTH", login->user, login->password, NULL);
        } else {
            resp_command(&b, "AUTH", login->password, NULL);
        }
        replies++;
    }
    if (endpoint->db != 0) {
        resp_head(&b, 2);
        resp_text(&b, "SELECT");
        resp_decimal(&b, endpoint->db);
        replies++;
    }
    bool ok = replies == 0 || redis_queue(redis, &b);
    buffer_release(&b);
    while (ok && replies-- > 0) {
        ok = expect_ok(redis, deadline_ms, error, error_n);
    }
    return ok;
}

struct redis *redis_connect(const struct redis_endpoint *endpoint, struct resolvers *resolvers,
    const struct redis_look *look, int64_t deadline_ms, char *error, size_t error_n)
{
    (void)snprintf(error, error_n, "out of memory");
    struct redis *redis =
        open_address(&endpoint->address, resolvers, look, deadline_ms, error, error_n);
    if (redis != NULL && !auth_and_select(redis, endpoint, deadline_ms, error, error_n)) {
        redis_close(redis);
        return NULL;
    }
    return redis;
}
