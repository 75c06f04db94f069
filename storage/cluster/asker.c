#include "storage/cluster/asker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "storage/base/clock.h"
#include "storage/cluster/listener.h"
#include "storage/redis/ask.h"
#include "storage/redis/connect.h"
#include "storage/redis/resp.h"

#define PEERS     (2 * QUESTIONS_MAX) /* so many connections are kept */
#define PEER_KEEP 60000 /* a connection is closed after so many ms without a question */

/* A server that is, or was, asked, and the connection to it. */
struct peer {
    struct redis_address address; /* host "": this place is free */
    bool is_sentinel;
    struct redis *redis; /* NULL: not connected */
    int64_t used_ms;
};

struct asker {
    struct redis_url url;
    struct resolvers *resolvers;
    unsigned n_partitions;
    uint16_t slots[PARTITIONS_MAX];
    struct peer peers[PEERS];
    struct listener listener;
    struct redis_look look; /* ends waits on connections when the asker is stopped */
    atomic_bool stopped;
};

/* ---- peers ---- */

static void peer_close(struct peer *peer)
{
    redis_close(peer->redis);
    peer->redis = NULL;
}

static void peer_release(struct peer *peer)
{
    peer_close(peer);
    *peer = (struct peer){.redis = NULL};
}

/* The peer that the question is for.  A new peer takes a free place, or that of the peer that was
 * asked longest ago.  There are more places than a round has questions, so a peer of this round
 * keeps its place. */
static struct peer *peer_find(struct asker *asker, const struct question *q, int64_t now_ms)
{
    bool is_sentinel = q->kind == QUESTION_SENTINEL;
    struct peer *place = &asker->peers[0];
    for (size_t i = 0; i < PEERS; i++) {
        struct peer *peer = &asker->peers[i];
        if (peer->is_sentinel == is_sentinel && redis_address_equal(&peer->address, &q->address)) {
            peer->used_ms = now_ms;
            return peer;
        }
        place = peer->used_ms < place->used_ms ? peer : place;
    }
    peer_release(place);
    place->address = q->address;
    place->is_sentinel = is_sentinel;
    place->used_ms = now_ms;
    return place;
}

static void close_unused(struct asker *asker, int64_t now_ms)
{
    for (size_t i = 0; i < PEERS; i++) {
        if (asker->peers[i].address.host[0] != '\0' &&
            now_ms - asker->peers[i].used_ms > PEER_KEEP) {
            peer_release(&asker->peers[i]);
        }
    }
}

static bool peer_connect(
    struct asker *asker, struct peer *peer, int64_t deadline_ms, char error[QUESTION_ERROR_SIZE])
{
    struct redis_endpoint endpoint = peer->is_sentinel
                                         ? redis_endpoint_of_sentinel(&asker->url, &peer->address)
                                         : redis_endpoint_of_server(&asker->url, &peer->address);
    endpoint.db = 0; /* the questions need no database, and Sentinels have none */
    peer->redis = redis_connect(
        &endpoint, asker->resolvers, &asker->look, deadline_ms, error, QUESTION_ERROR_SIZE);
    return peer->redis != NULL;
}

/* ---- one question ---- */

struct asking {
    struct asker *asker;
    struct peer *peer;
    struct question *question;
    int64_t deadline_ms;
    bool refused; /* the server has answered, but not what was asked for */
};

static size_t question_write(const struct asker *asker, const struct question *q, struct buffer *b)
{
    switch (q->kind) {
    case QUESTION_CLUSTER:
        resp_command(b, "CLUSTER", "MYID", NULL);
        resp_command(b, "CLUSTER", "INFO", NULL);
        resp_command(b, "CLUSTER", "SLOTS", NULL);
        return 3;
    case QUESTION_SENTINEL:
        resp_command(b, "SENTINEL", "MASTER", asker->url.master, NULL);
        resp_command(b, "SENTINEL", "SENTINELS", asker->url.master, NULL);
        return 2;
    case QUESTION_ROLE:
        break;
    }
    resp_command(b, "ROLE", NULL);
    resp_command(b, "INFO", "SERVER", NULL);
    return 2;
}

static bool cluster_take(const struct asking *asking, size_t i, const struct reply *reply)
{
    struct cluster_view *view = &asking->question->cluster;
    return i == 0   ? cluster_view_take_id(view, reply)
           : i == 1 ? cluster_view_take_info(view, reply)
                    : slot_map_parse(reply, asking->peer->address.host, asking->asker->slots,
                          asking->asker->n_partitions, &view->map);
}

/* Take the reply to command @i; a redis_take_fn. */
static bool reply_take(void *data, size_t i, const struct reply *reply)
{
    struct asking *asking = data;
    struct question *q = asking->question;
    bool taken = true;
    switch (q->kind) {
    case QUESTION_CLUSTER:
        taken = cluster_take(asking, i, reply);
        break;
    case QUESTION_SENTINEL:
        if (i == 0) {
            taken = sentinel_view_take_master(&q->sentinel, reply);
        } else {
            sentinel_view_take_others(&q->sentinel, reply);
        }
        break;
    case QUESTION_ROLE:
        taken =
            i == 0 ? role_view_take_role(&q->role, reply) : role_view_take_info(&q->role, reply);
        break;
    }
    asking->refused = !taken;
    if (!taken) {
        (void)snprintf(q->error, sizeof(q->error), "%.80s", reply_complaint(reply));
    }
    return taken;
}

/* Ask over the connection that stands. */
static enum redis_status ask_over(struct asking *asking)
{
    struct question *q = asking->question;
    struct buffer out;
    buffer_init(&out);
    q->error[0] = '\0';
    size_t n = question_write(asking->asker, q, &out);
    enum redis_status status =
        redis_ask_all(asking->peer->redis, &out, n, asking->deadline_ms, reply_take, asking);
    buffer_release(&out);
    if (status != REDIS_OK_STATUS) {
        peer_close(asking->peer);
    }
    if (status != REDIS_OK_STATUS && q->error[0] == '\0') {
        (void)snprintf(q->error, sizeof(q->error), "%s", redis_status_text(status));
    }
    return status;
}

/* Ask one question, on a thread of its own.  A kept connection may have broken since: its loss says
 * nothing, so a new connection is tried. */
static void *asking_run(void *data)
{
    struct asking *asking = data;
    struct question *q = asking->question;
    enum redis_status status = REDIS_LOST;
    if (asking->peer->redis != NULL) {
        status = ask_over(asking);
    }
    if (status == REDIS_LOST && !asking->refused &&
        peer_connect(asking->asker, asking->peer, asking->deadline_ms, q->error)) {
        status = ask_over(asking);
    }
    q->answered = status == REDIS_OK_STATUS;
    return NULL;
}

static void asker_ask(void *data, struct question *questions, size_t n, int64_t deadline_ms)
{
    struct asker *asker = data;
    struct asking askings[QUESTIONS_MAX];
    pthread_t threads[QUESTIONS_MAX];
    bool started[QUESTIONS_MAX] = {false};
    int64_t now_ms = monotonic_ms();
    close_unused(asker, now_ms);
    for (size_t i = 0; i < n; i++) {
        askings[i] = (struct asking){.asker = asker,
            .peer = peer_find(asker, &questions[i], now_ms),
            .question = &questions[i],
            .deadline_ms = deadline_ms};
    }
    for (size_t i = 1; i < n; i++) {
        started[i] = pthread_create(&threads[i], NULL, asking_run, &askings[i]) == 0;
    }
    for (size_t i = 0; i < n; i++) {
        if (!started[i]) {
            (void)asking_run(
                &askings[i]); /* the first one; and those for which there was no thread */
        }
    }
    for (size_t i = 1; i < n; i++) {
        if (started[i]) {
            (void)pthread_join(threads[i], NULL);
        }
    }
}

/* ---- the rest of the world ---- */

static int64_t asker_now_ms(void *data)
{
    (void)data;
    return monotonic_ms();
}

static uint32_t asker_random(void *data)
{
    uint32_t number;
    (void)data;
    bool drawn = getrandom(&number, sizeof(number), GRND_NONBLOCK) == sizeof(number);
    return drawn ? number : (uint32_t)monotonic_us(); /* chance only spreads processes in time */
}

static bool asker_wait(
    void *data, int wake_fd, const struct redis_address *listen, int64_t until_ms)
{
    struct asker *asker = data;
    return listener_wait(&asker->listener, wake_fd, listen, until_ms);
}

static void asker_interrupt(void *data)
{
    struct asker *asker = data;
    atomic_store(&asker->stopped, true);
}

static bool asker_look(void *data)
{
    const struct asker *asker = data;
    return !atomic_load(&asker->stopped);
}

const struct topology_io asker_io = {
    asker_now_ms, asker_random, asker_ask, asker_wait, asker_interrupt};

struct asker *asker_new(
    const struct redis_url *url, const struct partitions *partitions, struct resolvers *resolvers)
{
    struct asker *asker = calloc(1, sizeof(*asker));
    if (asker == NULL) {
        return NULL;
    }
    asker->url = *url;
    asker->resolvers = resolvers;
    asker->n_partitions = partitions->n;
    for (unsigned p = 0; p < partitions->n; p++) {
        asker->slots[p] = (uint16_t)partition_slot(partitions, p);
    }
    asker->look = (struct redis_look){.look = asker_look, .data = asker};
    listener_init(&asker->listener, &asker->url, resolvers, &asker->look);
    return asker;
}

void asker_free(struct asker *asker)
{
    if (asker == NULL) {
        return;
    }
    for (size_t i = 0; i < PEERS; i++) {
        peer_release(&asker->peers[i]);
    }
    listener_release(&asker->listener);
    free(asker);
}
