/* pfcount.c - how long Redis takes for PFCOUNT over given keys, asked again and again.
 *
 *	pfcount SOCKET TIMES <KEYS        one key a line
 *
 * One connection, one command at a time; the time is from the first byte sent to the reply.  The
 * result is one line of JSON.
 */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KEYS_MAX  2000
#define TIMES_MAX 1000000

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

int main(int argc, char **argv)
{
    static const char *words[KEYS_MAX + 1] = {"PFCOUNT"};
    char line[4096];
    int n = 1;
    long times = argc == 3 ? strtol(argv[2], NULL, 10) : 0;

    if (times < 1 || times > TIMES_MAX) {
        (void)fprintf(stderr, "usage: pfcount SOCKET TIMES <KEYS\n");
        return 2;
    }
    while (n <= KEYS_MAX && fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        words[n++] = strdup(line);
    }
    redisContext *redis = redisConnectUnix(argv[1]);
    double *took = calloc((size_t)times, sizeof(*took));
    if (took == NULL || redis == NULL || redis->err != 0) {
        (void)fprintf(stderr, "pfcount: no connection\n");
        return 1;
    }
    long long count = 0;
    for (long i = 0; i < times; i++) {
        double start = now_us();
        redisReply *reply = redisCommandArgv(redis, n, words, NULL);

        took[i] = now_us() - start;
        if (reply == NULL || reply->type != REDIS_REPLY_INTEGER) {
            (void)fprintf(stderr, "pfcount: %s\n", reply == NULL ? redis->errstr : reply->str);
            return 1;
        }
        count = reply->integer;
        freeReplyObject(reply);
    }
    qsort(took, (size_t)times, sizeof(*took), compare);
    printf("{\"keys\": %d, \"count\": %lld, \"times\": %ld, \"p50_us\": %.1f, \"p99_us\": %.1f, "
           "\"max_us\": %.1f}\n",
        n - 1, count, times, took[times / 2], took[times * 99 / 100], took[times - 1]);
    redisFree(redis);
    free(took);
    return 0;
}
