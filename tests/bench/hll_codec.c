/* hll_codec.c - sketches counted by Redis (PFCOUNT), and fetched (MGET) and merged here.
 *
 *	hll_codec SOCKET TIMES
 *
 * For 1, 10, 60 and 235 keys, sparse (1,000 elements) and dense (20,000), on a Redis that may be
 * written to: the median time of a command as its client sees it, the time that Redis's only thread
 * was busy with the command (INFO commandstats; the copy of the reply into the socket comes on top
 * for MGET), and the time of merging and estimating here, by kernel.  All ways must come to the
 * same number.  A last line per kernel: one dense merge, one estimate.
 *
 * PFCOUNT of one key is answered from the cache in the key, as long as nobody writes it.
 */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "storage/sketch/hll.h"
#include "storage/sketch/hll_simd.h"

#define KEYS_MAX  235
#define TIMES_MAX 100000

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;
    return (*x > *y) - (*x < *y);
}

static double median(double *values, long n)
{
    qsort(values, (size_t)n, sizeof(*values), compare);
    return values[n / 2];
}

static void die(const char *why)
{
    (void)fprintf(stderr, "hll_codec: %s\n", why);
    exit(1);
}

static redisReply *ask(redisContext *redis, int argc, const char **argv)
{
    redisReply *reply = redisCommandArgv(redis, argc, argv, NULL);
    if (reply == NULL || reply->type == REDIS_REPLY_ERROR) {
        die(reply == NULL ? redis->errstr : reply->str);
    }
    return reply;
}

/* "usec_per_call" of a command since the last CONFIG RESETSTAT. */
static double busy_us(redisContext *redis, const char *command)
{
    redisReply *reply = ask(redis, 2, (const char *[]){"INFO", "commandstats"});
    char name[64];
    (void)snprintf(name, sizeof(name), "cmdstat_%s:", command);
    const char *at = strstr(reply->str, name);
    at = at == NULL ? NULL : strstr(at, "usec_per_call=");
    double us = at == NULL ? 0 : strtod(at + strlen("usec_per_call="), NULL);
    freeReplyObject(reply);
    return us;
}

static void fill(redisContext *redis, const char *key, int elements, unsigned *seed)
{
    char text[1000][24];
    const char *argv[1002] = {"PFADD", key};
    for (int done = 0; done < elements; done += 1000) {
        for (int i = 0; i < 1000; i++) {
            (void)snprintf(text[i], sizeof(text[i]), "visitor %u", (*seed)++);
            argv[2 + i] = text[i];
        }
        freeReplyObject(ask(redis, 1002, argv));
    }
}

/* One row: the same keys by both ways. */
static void row(redisContext *redis, const char *encoding, char (*keys)[24], int n, long times)
{
    static double took[TIMES_MAX];
    const char *argv[KEYS_MAX + 1] = {"PFCOUNT"};
    long long count = 0;
    for (int i = 0; i < n; i++) {
        argv[1 + i] = keys[i];
    }
    freeReplyObject(ask(redis, n + 1, argv));
    freeReplyObject(ask(redis, 2, (const char *[]){"CONFIG", "RESETSTAT"}));
    for (long i = 0; i < times; i++) {
        double start = now_us();
        redisReply *reply = ask(redis, n + 1, argv);
        took[i] = now_us() - start;
        count = reply->integer;
        freeReplyObject(reply);
    }
    double pfcount = median(took, times);
    argv[0] = "MGET";
    redisReply *strings = NULL;
    for (long i = 0; i < times; i++) {
        if (strings != NULL) {
            freeReplyObject(strings);
        }
        double start = now_us();
        strings = ask(redis, n + 1, argv);
        took[i] = now_us() - start;
    }
    double mget = median(took, times);
    struct hll hll;
    for (long i = 0; i < times; i++) {
        double start = now_us();
        hll_clear(&hll);
        for (int k = 0; k < n; k++) {
            if (!hll_merge(&hll, strings->element[k]->str, strings->element[k]->len)) {
                die("a key is no sketch");
            }
        }
        if (hll_estimate(&hll) != (uint64_t)count) {
            die("the two ways differ");
        }
        took[i] = now_us() - start;
    }
    freeReplyObject(strings);
    printf("%-7s %5d %10.1f %10.1f %10.1f %10.1f %10.1f\n", encoding, n, busy_us(redis, "pfcount"),
        busy_us(redis, "mget"), median(took, times), pfcount, mget);
}

static void kernels(long times)
{
    static double took[TIMES_MAX];
    static uint8_t string[HLL_DENSE_SIZE];
    static struct hll hll;
    const struct hll_kernel *kernel = NULL;
    for (size_t k = 0; (kernel = hll_kernel(k)) != NULL; k++) {
        uint32_t counts[HLL_VALUES];
        for (size_t i = 16; i < sizeof(string); i++) {
            string[i] = (uint8_t)(i * 37 % 48);
        }
        for (long i = 0; i < times; i++) {
            double start = now_us();
            for (int r = 0; r < 10; r++) {
                kernel->merge_packed(hll.registers, string + 16);
            }
            took[i] = (now_us() - start) / 10;
        }
        double merge = median(took, times);
        for (unsigned i = 0; i < HLL_REGISTERS; i++) { /* as 500,000 elements leave them */
            uint32_t noise = i * 2654435761u;
            hll.registers[i] = (uint8_t)(4 + __builtin_ctz(noise >> 7 | 1u << 20));
        }
        for (long i = 0; i < times; i++) {
            double start = now_us();
            for (int r = 0; r < 10; r++) {
                kernel->count_values(hll.registers, counts);
            }
            took[i] = (now_us() - start) / 10;
        }
        printf("%s: %.2f us a dense merge, %.2f us counting the registers\n", kernel->name, merge,
            median(took, times));
    }
}

int main(int argc, char **argv)
{
    static const int rows[] = {1, 10, 60, KEYS_MAX};
    static char keys[KEYS_MAX][24];
    long times = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
    unsigned seed = 1;
    if (times < 1 || times > TIMES_MAX) {
        (void)fprintf(stderr, "usage: hll_codec SOCKET TIMES\n");
        return 2;
    }
    redisContext *redis = redisConnectUnix(argv[1]);
    if (redis == NULL || redis->err != 0) {
        die("no connection");
    }
    printf("%-7s %5s %10s %10s %10s %10s %10s   (us)\n", "", "keys", "PFCOUNT", "MGET",
        "merge here", "PFCOUNT", "MGET");
    printf("%-7s %5s %10s %10s %10s %10s %10s\n", "", "", "in Redis", "in Redis", "+estimate",
        "for client", "for client");
    for (int dense = 0; dense < 2; dense++) {
        for (int k = 0; k < KEYS_MAX; k++) {
            (void)snprintf(keys[k], sizeof(keys[k]), "%s%d", dense ? "dense" : "sparse", k);
            fill(redis, keys[k], dense ? 20000 : 1000, &seed);
        }
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            row(redis, dense ? "dense" : "sparse", keys, rows[i], times);
        }
    }
    kernels(times);
    redisFree(redis);
    return 0;
}
