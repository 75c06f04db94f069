/* fetch.c - what it takes to be given the values of given keys, if nothing is done with them.
 *
 *	fetch SOCKET TIMES <KEYS        one key a line
 *
 * MGETs of 16 keys, at most 8 of them ahead, on one connection; the bytes are counted and thrown
 * away.  Like tallyd's readers it looks again some times before it sleeps, so that it need not be
 * woken for each piece.  The time is from the first byte sent to the last one received.  The result
 * is one line of JSON.
 */
#include <hiredis/hiredis.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define KEYS_MAX  2000
#define TIMES_MAX 1000000
#define AT_ONCE   16
#define AHEAD     8
#define LOOKS     30

struct piece {
    char *command;
    int command_n;
    size_t reply_n; /* bytes */
};

static void fail(const char *what)
{
    (void)fprintf(stderr, "fetch: %s\n", what);
    exit(1);
}

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static size_t bulk_n(const redisReply *item)
{
    return (size_t)snprintf(NULL, 0, "$%zu\r\n\r\n", (size_t)item->len) + (size_t)item->len;
}

/* One MGET of @n keys, asked once by hiredis to know how long its reply is. */
static struct piece piece_of(redisContext *redis, const char **keys, int n)
{
    const char *words[AT_ONCE + 1] = {"MGET"};
    struct piece piece = {0};
    for (int i = 0; i < n; i++) {
        words[i + 1] = keys[i];
    }
    redisReply *reply = redisCommandArgv(redis, n + 1, words, NULL);
    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY) {
        fail("MGET is refused");
    }
    piece.reply_n = (size_t)snprintf(NULL, 0, "*%d\r\n", n);
    for (size_t i = 0; i < reply->elements; i++) {
        if (reply->element[i]->type != REDIS_REPLY_STRING) {
            fail("a key is missing");
        }
        piece.reply_n += bulk_n(reply->element[i]);
    }
    freeReplyObject(reply);
    piece.command_n = (int)redisFormatCommandArgv(&piece.command, n + 1, words, NULL);
    return piece;
}

/* Some bytes more, or wait for them. */
static size_t take(int fd)
{
    static char sink[65536];
    for (int looks = 0;; looks++) {
        ssize_t n = recv(fd, sink, sizeof(sink), MSG_DONTWAIT);
        if (n > 0) {
            return (size_t)n;
        }
        if (n == 0) {
            fail("the connection is closed");
        }
        if (looks < LOOKS) {
            (void)sched_yield();
        } else if (poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 5000) <= 0) {
            fail("Redis does not answer");
        }
    }
}

static void fetch_all(int fd, const struct piece *pieces, int n)
{
    int sent = 0;
    size_t had = 0;
    for (int done = 0; done < n;) {
        for (; sent < n && sent < done + AHEAD; sent++) {
            if (write(fd, pieces[sent].command, (size_t)pieces[sent].command_n) !=
                pieces[sent].command_n) {
                fail("the socket does not take a command");
            }
        }
        had += take(fd);
        while (done < sent && had >= pieces[done].reply_n) {
            had -= pieces[done++].reply_n;
        }
    }
}

int main(int argc, char **argv)
{
    static const char *keys[KEYS_MAX];
    static struct piece pieces[KEYS_MAX / AT_ONCE + 1];
    char line[4096];
    int n_keys = 0, n = 0;
    long times = argc == 3 ? strtol(argv[2], NULL, 10) : 0;

    if (times < 1 || times > TIMES_MAX) {
        (void)fprintf(stderr, "usage: fetch SOCKET TIMES <KEYS\n");
        return 2;
    }
    while (n_keys < KEYS_MAX && fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        keys[n_keys++] = strdup(line);
    }
    redisContext *redis = redisConnectUnix(argv[1]);
    double *took = calloc((size_t)times, sizeof(*took));
    if (took == NULL || redis == NULL || redis->err != 0) {
        fail("no connection");
    }
    size_t bytes = 0;
    for (int at = 0; at < n_keys; at += AT_ONCE) {
        pieces[n] = piece_of(redis, keys + at, n_keys - at < AT_ONCE ? n_keys - at : AT_ONCE);
        bytes += pieces[n++].reply_n;
    }
    for (long i = 0; i < times; i++) {
        double start = now_us();
        fetch_all(redis->fd, pieces, n);
        took[i] = now_us() - start;
    }
    qsort(took, (size_t)times, sizeof(*took), compare);
    printf("{\"keys\": %d, \"bytes\": %zu, \"times\": %ld, \"p50_us\": %.1f, \"p99_us\": %.1f}\n",
        n_keys, bytes, times, took[times / 2], took[times * 99 / 100]);
    redisFree(redis);
    free(took);
    return 0;
}
