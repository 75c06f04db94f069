/* same_keys.c - what it costs Redis to answer from given keys, asked again and again.
 *
 *	same_keys pfcount SOCKET TIMES <KEYS        one key a line
 *	same_keys fetch SOCKET TIMES <KEYS
 *
 * One connection.  "pfcount" sends one PFCOUNT of all keys at a time.  "fetch" has the values sent
 * over and throws them away: MGETs of 16 keys, at most 8 of them ahead; like tallyd's readers it
 * looks again some times before it sleeps, so that it need not be woken for each piece.  The time
 *is from the first byte sent to the last one received.  The result is one line of JSON.
 */
#include <hiredis/hiredis.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
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
    (void)fprintf(stderr, "same_keys: %s\n", what);
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

/* ---- pfcount ---- */

static void pfcount(redisContext *redis, const char **keys, int n)
{
    static const char *words[KEYS_MAX + 1] = {"PFCOUNT"};
    memcpy(words + 1, keys, (size_t)n * sizeof(*keys));
    redisReply *reply = redisCommandArgv(redis, n + 1, words, NULL);
    if (reply == NULL || reply->type != REDIS_REPLY_INTEGER) {
        fail(reply == NULL ? redis->errstr : reply->str);
    }
    freeReplyObject(reply);
}

/* ---- fetch ---- */

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

/* ---- both ---- */

static int read_keys(const char **keys)
{
    char line[4096];
    int n = 0;
    while (n < KEYS_MAX && fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        keys[n++] = strdup(line);
    }
    return n;
}

int main(int argc, char **argv)
{
    static const char *keys[KEYS_MAX];
    static struct piece pieces[KEYS_MAX / AT_ONCE + 1];
    bool fetches = argc == 4 && strcmp(argv[1], "fetch") == 0;
    long times = argc == 4 ? strtol(argv[3], NULL, 10) : 0;
    int n_pieces = 0;

    if (times < 1 || times > TIMES_MAX || (!fetches && strcmp(argv[1], "pfcount") != 0)) {
        (void)fprintf(stderr, "usage: same_keys pfcount|fetch SOCKET TIMES <KEYS\n");
        return 2;
    }
    int n = read_keys(keys);
    redisContext *redis = redisConnectUnix(argv[2]);
    double *took = calloc((size_t)times, sizeof(*took));
    if (took == NULL || redis == NULL || redis->err != 0) {
        fail("no connection");
    }
    for (int at = 0; fetches && at < n; at += AT_ONCE) {
        pieces[n_pieces++] = piece_of(redis, keys + at, n - at < AT_ONCE ? n - at : AT_ONCE);
    }
    for (long i = 0; i < times; i++) {
        double start = now_us();
        if (fetches) {
            fetch_all(redis->fd, pieces, n_pieces);
        } else {
            pfcount(redis, keys, n);
        }
        took[i] = now_us() - start;
    }
    qsort(took, (size_t)times, sizeof(*took), compare);
    printf("{\"keys\": %d, \"times\": %ld, \"p50_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f}\n",
        n, times, took[times / 2], took[times * 99 / 100], took[times - 1]);
    redisFree(redis);
    free(took);
    return 0;
}
