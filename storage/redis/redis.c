#include "storage/redis/redis.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "storage/base/arena.h"
#include "storage/base/clock.h"

/* Bytes that one read(2) takes at most: Redis writes as many at once.  hiredis takes 16 KB, which
 * is a system call for each sketch, while Redis waits for tallyd. */
#define READ_SIZE (64 * 1024)

/* How many times a thread that has a part of a large reply reads before the thread sleeps, some 15
 * us in all.  More bytes mostly come at once, and to wake a thread costs Redis more than to send.
 * Other threads may run between two reads.  Measured with 2.9 MB of sketches: one read costs Redis
 * 660 us, 30 reads 505 us, 200 reads 505 us. */
#define LOOKS_AMID 30

/* Bytes of memory that the buffer of commands keeps when all commands are sent.  hiredis frees its
 * own buffer then.  Large memory would go back to the system each time, which makes every thread's
 * processor forget addresses: a third of tallyd's time, measured with an import. */
#define OUT_KEPT ((size_t)256 * 1024)

struct redis {
    redisContext *context;
    struct redis_look look;
    struct buffer out;  /* the queued commands, among them what is sent already */
    size_t sent;        /* how many bytes of `out` are sent */
    struct arena arena; /* memory of the replies; the privdata of hiredis's reader */
    bool keeps;         /* redis_next() keeps the earlier replies */
};

/* ---- reply objects in the arena ---- */

/* The reply for a task of hiredis's reader: an element of its array, or a new one.  NULL: no
 * memory. */
static struct reply *place_reply(const redisReadTask *task, enum reply_type type)
{
    struct reply *reply;
    if (task->parent != NULL) {
        reply = &((struct reply *)task->parent->obj)->items[task->idx];
    } else {
        reply = arena_alloc(task->privdata, sizeof(*reply));
        if (reply == NULL) {
            return NULL;
        }
    }
    *reply = (struct reply){.type = type};
    return reply;
}

static void *create_string(const redisReadTask *task, char *bytes, size_t n)
{
    enum reply_type type = task->type == REDIS_REPLY_ERROR    ? REPLY_ERROR
                           : task->type == REDIS_REPLY_STATUS ? REPLY_STATUS
                                                              : REPLY_TEXT;
    struct reply *reply = place_reply(task, type);
    char *copy = reply == NULL ? NULL : arena_alloc(task->privdata, n + 1);
    if (copy == NULL) {
        return NULL;
    }
    memcpy(copy, bytes, n);
    copy[n] = '\0';
    reply->text = (struct slice){copy, n};
    return reply;
}

static void *create_array(const redisReadTask *task, int n)
{
    struct reply *reply = place_reply(task, REPLY_ARRAY);
    if (reply == NULL || n < 0) {
        return NULL;
    }
    reply->items = arena_alloc(task->privdata, (size_t)n * sizeof(*reply->items) + 1);
    reply->n = (size_t)n;
    return reply->items == NULL ? NULL : reply;
}

static void *create_integer(const redisReadTask *task, long long value)
{
    struct reply *reply = place_reply(task, REPLY_INTEGER);
    if (reply != NULL) {
        reply->integer = value;
    }
    return reply;
}

static void *create_nil(const redisReadTask *task)
{
    return place_reply(task, REPLY_NIL);
}

static void free_object(void *object)
{
    (void)object; /* the arena owns the object */
}

static redisReplyObjectFunctions reply_functions = {
    create_string, create_array, create_integer, create_nil, free_object};

/* ---- sending and receiving ---- */

const char *redis_status_text(enum redis_status status)
{
    return status == REDIS_TIMEOUT ? "no answer" : "the connection was lost";
}

/* Wait until @fd is ready for @events of poll(2), and call look() meanwhile. */
static enum redis_status wait_for(
    int fd, short events, const struct redis_look *look, int64_t deadline_ms)
{
    const int64_t most = look->look != NULL ? REDIS_LOOK_MS : 60000;
    for (;;) {
        int64_t left = deadline_ms - monotonic_ms();
        if (left <= 0) {
            return REDIS_TIMEOUT;
        }
        struct pollfd p = {.fd = fd, .events = events};
        int n = poll(&p, 1, (int)(left > most ? most : left));
        if (n > 0) {
            return REDIS_OK_STATUS;
        }
        if (n < 0 && errno != EINTR) {
            return REDIS_LOST;
        }
        if (look->look != NULL && !look->look(look->data)) {
            return REDIS_LOST;
        }
    }
}

bool redis_queue(struct redis *redis, const struct buffer *b)
{
    struct buffer *out = &redis->out;
    if (b->failed) {
        return false;
    }
    if (redis->sent > 0) { /* a buffer that is never all sent would keep what is sent */
        out->n -= redis->sent;
        memmove(out->p, out->p + redis->sent, out->n);
        redis->sent = 0;
    }
    buffer_append(out, b->p, b->n);
    bool ok = !out->failed;
    out->failed = false; /* buffer_append() has dropped @b as a whole */
    return ok;
}

enum redis_status redis_send(struct redis *redis, bool *ret_left)
{
    struct buffer *out = &redis->out;
    if (redis->sent < out->n) {
        ssize_t n = send(redis_fd(redis), out->p + redis->sent, out->n - redis->sent, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            return REDIS_LOST;
        }
        redis->sent += n > 0 ? (size_t)n : 0;
    }
    *ret_left = redis->sent < out->n;
    if (!*ret_left) {
        buffer_clear(out, OUT_KEPT);
        redis->sent = 0;
    }
    return REDIS_OK_STATUS;
}

/* Read what the socket has.  *ret_n is the number of bytes that came. */
static enum redis_status receive_some(struct redis *redis, size_t *ret_n)
{
    char bytes[READ_SIZE];
    ssize_t n = read(redis_fd(redis), bytes, sizeof(bytes));
    *ret_n = n > 0 ? (size_t)n : 0;
    if (n < 0) {
        return errno == EAGAIN || errno == EINTR ? REDIS_OK_STATUS : REDIS_LOST;
    }
    bool taken = n > 0 && redisReaderFeed(redis->context->reader, bytes, (size_t)n) == REDIS_OK;
    return taken ? REDIS_OK_STATUS : REDIS_LOST;
}

enum redis_status redis_receive(struct redis *redis)
{
    size_t n;
    return receive_some(redis, &n);
}

/* Has a part of the next reply come?  Behind whole replies hiredis's reader may stand at the first
 * item of the next one (ridx 0), too, but then it has no bytes left. */
static bool is_amid(const struct redis *redis)
{
    const redisReader *reader = redis->context->reader;
    return reader->ridx > 0 || (reader->ridx == 0 && reader->pos < reader->len);
}

/* Read a few times, until bytes come.  *ret_n is their number; 0: none came. */
static enum redis_status receive_amid(struct redis *redis, size_t *ret_n)
{
    enum redis_status status = receive_some(redis, ret_n);
    for (unsigned look = 1; look < LOOKS_AMID && status == REDIS_OK_STATUS && *ret_n == 0; look++) {
        (void)sched_yield();
        status = receive_some(redis, ret_n);
    }
    return status;
}

enum redis_status redis_next(struct redis *redis, const struct reply **ret)
{
    void *object = NULL;
    if (!redis->keeps && redis->context->reader->ridx == -1) { /* no reply is half read */
        arena_clear(&redis->arena);
    }
    if (redisGetReplyFromReader(redis->context, &object) != REDIS_OK) {
        return REDIS_LOST;
    }
    *ret = object;
    return REDIS_OK_STATUS;
}

/* Sleep until the socket has bytes or, with @sending, takes bytes; then read what the socket has.
 * Returns REDIS_TIMEOUT at the deadline, or earlier after silence. */
static enum redis_status wait_and_receive(struct redis *redis, bool sending, int64_t deadline_ms)
{
    int64_t silence_ms = redis->look.silence_ms;
    int64_t silent_ms = silence_ms > 0 ? monotonic_ms() + silence_ms : INT64_MAX;
    enum redis_status status = wait_for(redis_fd(redis), sending ? POLLIN | POLLOUT : POLLIN,
        &redis->look, silent_ms < deadline_ms ? silent_ms : deadline_ms);
    /* If only POLLOUT came there is nothing to read, which is harmless. */
    return status == REDIS_OK_STATUS ? redis_receive(redis) : status;
}

/* Read what the server sent before it closed the connection.  That may be the reason, as that there
 * are too many clients. */
static bool has_last_words(struct redis *redis)
{
    size_t n;
    return receive_some(redis, &n) == REDIS_OK_STATUS && n > 0;
}

enum redis_status redis_await(struct redis *redis, int64_t deadline_ms, const struct reply **ret)
{
    bool left = true;
    for (;;) {
        enum redis_status status = left ? redis_send(redis, &left) : REDIS_OK_STATUS;
        if (status == REDIS_LOST && has_last_words(redis)) {
            status = REDIS_OK_STATUS;
        }
        if (status == REDIS_OK_STATUS) {
            status = redis_next(redis, ret);
        }
        if (status != REDIS_OK_STATUS || *ret != NULL) {
            return status;
        }
        size_t came = 0;
        if (is_amid(redis) && monotonic_ms() < deadline_ms) {
            status = receive_amid(redis, &came);
        }
        if (status == REDIS_OK_STATUS && came == 0) {
            status = wait_and_receive(redis, left, deadline_ms);
        }
        if (status != REDIS_OK_STATUS) {
            return status;
        }
    }
}

enum redis_status redis_await_all(
    struct redis *redis, size_t n, int64_t deadline_ms, const struct reply **ret)
{
    struct reply *all = NULL;
    const struct reply *one = NULL;
    enum redis_status status = redis_await(redis, deadline_ms, &one);
    if (status == REDIS_OK_STATUS) {
        all = arena_alloc(&redis->arena, (n + 1) * sizeof(*all));
        status = all == NULL ? REDIS_LOST : REDIS_OK_STATUS;
    }
    redis->keeps = true;
    for (size_t i = 0; status == REDIS_OK_STATUS && i < n; i++) {
        all[1 + i] = *one;
        status = i + 1 < n ? redis_await(redis, deadline_ms, &one) : REDIS_OK_STATUS;
    }
    redis->keeps = false;
    if (status == REDIS_OK_STATUS) {
        all[0] = (struct reply){.type = REPLY_ARRAY, .items = all + 1, .n = n};
    }
    *ret = all;
    return status;
}

/* ---- connecting ---- */

/* Wait for the connect to end.  The socket's pending error tells how the connect ended.  False:
 * @error says why. */
static bool await_connected(redisContext *context, const struct redis_look *look,
    int64_t deadline_ms, char *error, size_t error_n)
{
    if (context->err != 0) {
        (void)snprintf(error, error_n, "%s", context->errstr);
        return false;
    }
    enum redis_status status = wait_for(context->fd, POLLOUT, look, deadline_ms);
    if (status != REDIS_OK_STATUS) {
        bool late = status == REDIS_TIMEOUT;
        (void)snprintf(error, error_n, late ? "connect timed out" : "connect was given up");
        return false;
    }
    int pending = 0;
    socklen_t size = sizeof(pending);
    if (getsockopt(context->fd, SOL_SOCKET, SO_ERROR, &pending, &size) != 0 || pending != 0) {
        const char *text = strerrordesc_np(pending != 0 ? pending : errno);
        (void)snprintf(error, error_n, "connect failed: %s", text != NULL ? text : "no reason");
        return false;
    }
    return true;
}

struct redis *redis_open(const char *address, int port, const struct redis_look *look,
    int64_t deadline_ms, char *error, size_t error_n)
{
    redisContext *context =
        port == 0 ? redisConnectUnixNonBlock(address) : redisConnectNonBlock(address, port);
    struct redis *redis = context == NULL ? NULL : calloc(1, sizeof(*redis));
    if (redis == NULL) {
        (void)snprintf(error, error_n, "out of memory");
        if (context != NULL) {
            redisFree(context);
        }
        return NULL;
    }
    redis->context = context;
    redis->look = *look;
    if (!await_connected(context, look, deadline_ms, error, error_n)) {
        redis_close(redis);
        return NULL;
    }
    context->flags |= REDIS_CONNECTED;
    context->reader->fn = &reply_functions;
    context->reader->privdata = &redis->arena;
    context->reader->maxbuf = 0; /* else hiredis frees its buffer after each reply of 12 KiB */
    return redis;
}

void redis_close(struct redis *redis)
{
    if (redis != NULL) {
        redisFree(redis->context);
        buffer_release(&redis->out);
        arena_release(&redis->arena);
        free(redis);
    }
}

void redis_abandon(struct redis *redis)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(redis_fd(redis), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    redis_close(redis);
}

int redis_fd(const struct redis *redis)
{
    return redis->context->fd;
}
