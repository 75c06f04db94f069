#include "storage/cluster/listener.h"

#include <poll.h>
#include <string.h>

#include "storage/base/clock.h"
#include "storage/redis/connect.h"
#include "storage/redis/resp.h"

#define CONNECT_MS 200
#define PING_MS    1000
#define SILENCE_MS 3000 /* a Sentinel that is silent for so long is given up */

void listener_init(struct listener *l, const struct redis_url *url, struct resolvers *resolvers,
    const struct redis_look *look)
{
    *l = (struct listener){
        .url = url, .resolvers = resolvers, .look = look, .tried_ms = INT64_MIN / 2};
}

void listener_release(struct listener *l)
{
    redis_close(l->redis);
    l->redis = NULL;
}

/* Queue what is in @b, and send it as far as the socket takes it. */
static void listener_send(struct listener *l, struct buffer *b)
{
    bool left;
    if (!redis_queue(l->redis, b) || redis_send(l->redis, &left) != REDIS_OK_STATUS) {
        listener_release(l);
    }
    buffer_release(b);
}

static void listener_subscribe(
    struct listener *l, const struct redis_address *address, int64_t now_ms)
{
    struct redis_endpoint endpoint = redis_endpoint_of_sentinel(l->url, address);
    struct buffer b;
    char error[80];
    l->tried_ms = l->pinged_ms = l->heard_ms = now_ms;
    l->redis =
        redis_connect(&endpoint, l->resolvers, l->look, now_ms + CONNECT_MS, error, sizeof(error));
    if (l->redis != NULL) {
        buffer_init(&b);
        resp_command(&b, "SUBSCRIBE", "+switch-master", "+reboot", "-sdown", NULL);
        listener_send(l, &b);
    }
}

static void listener_ping(struct listener *l, int64_t now_ms)
{
    struct buffer b;
    if (now_ms - l->heard_ms > SILENCE_MS) {
        listener_release(l);
    } else if (now_ms - l->pinged_ms >= PING_MS) {
        l->pinged_ms = now_ms;
        buffer_init(&b);
        resp_command(&b, "PING", NULL);
        listener_send(l, &b);
    }
}

/* ["message", channel, text]: is it about our master?  Pongs and confirmations are not. */
static bool listener_concerns(const struct listener *l, const struct reply *reply)
{
    return reply->type == REPLY_ARRAY && reply->n == 3 && reply->items[0].type == REPLY_TEXT &&
           slice_equal(reply->items[0].text, SLICE("message")) &&
           reply->items[2].type == REPLY_TEXT &&
           memmem(reply->items[2].text.p, reply->items[2].text.n, l->url->master,
               strlen(l->url->master)) != NULL;
}

/* Read what has come.  True: the Sentinel has spoken of the master. */
static bool listener_read(struct listener *l, int64_t now_ms)
{
    bool spoken = false;
    enum redis_status status = redis_receive(l->redis);
    const struct reply *reply = NULL;
    l->heard_ms = now_ms;
    while (status == REDIS_OK_STATUS) {
        status = redis_next(l->redis, &reply);
        if (status == REDIS_OK_STATUS && reply == NULL) {
            return spoken;
        }
        spoken = spoken || (status == REDIS_OK_STATUS && listener_concerns(l, reply));
    }
    listener_release(l);
    return spoken;
}

bool listener_wait(
    struct listener *l, int wake_fd, const struct redis_address *listen, int64_t until_ms)
{
    int64_t now_ms = monotonic_ms();
    if (l->redis == NULL && listen != NULL && now_ms - l->tried_ms >= PING_MS) {
        listener_subscribe(l, listen, now_ms);
    }
    if (l->redis != NULL) {
        listener_ping(l, now_ms);
    }
    while ((now_ms = monotonic_ms()) < until_ms) {
        struct pollfd polled[2] = {{.fd = wake_fd, .events = POLLIN},
            {.fd = l->redis != NULL ? redis_fd(l->redis) : -1, .events = POLLIN}};
        int64_t left_ms = until_ms - now_ms;
        if (poll(polled, 2, left_ms > 60000 ? 60000 : (int)left_ms) < 0) {
            continue; /* a signal has interrupted poll() */
        }
        if (polled[0].revents != 0) {
            return false;
        }
        if (polled[1].revents != 0 && listener_read(l, monotonic_ms())) {
            return true;
        }
    }
    return false;
}
