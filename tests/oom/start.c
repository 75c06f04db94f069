/* start.c - a start of `tallyd serve`, and its SIGHUP, with every single allocation failing once.
 *
 *	start [STEP]
 *
 * For n = 1, 1 + STEP, ..: the n-th allocation of a start fails, in another round that one and a
 * dozen behind it.  The service must serve all the same, or end with a status and a line that says
 * why.  In the second part it is the n-th allocation from a SIGHUP on: the limit of a policy must
 * be that of before where the log says so, and else the new one.  Nothing may be left when the
 * process ends.  The last line says what was found; the status is 1 if anything was.
 */
#include <signal.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/oom/serving.h"
#include "tests/oom/service.h"

#define ROUNDS_MAX 3000
#define WHILE      12  /* allocations that fail together, in every other round */
#define SIGHUP_MS  250 /* from one to the next: the log leaves out what comes more often */
#define ANSWER_MAX 65536
#define LOG_MAX    65536
#define LIMIT      1000 /* of the policy: more than there are rounds */

struct bench {
    struct service service; /* its Redis is the one that is served from */
    char redis[256], locks[256], config[64], tokens[64], log[64];
    unsigned rounds, faults, refused;
    char answer[ANSWER_MAX], text[LOG_MAX];
};

__attribute__((format(printf, 3, 4))) static void found(
    struct bench *b, unsigned long n, const char *format, ...)
{
    va_list args;
    b->faults++;
    printf("allocation %lu: ", n);
    va_start(args, format);
    (void)vprintf(format, args);
    va_end(args);
    printf("\n");
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) {
        perror(path);
        exit(2);
    }
}

/* Everything that a configuration may have. */
static void write_config(struct bench *b, unsigned limit)
{
    char text[2048];
    (void)snprintf(text, sizeof(text),
        "redis = %s\nlock-redis = %s\ntokens = %s\nack-replicas = 0\n"
        "listen = 127.0.0.1:0\nthreads = 1\nreaders = 1\npartitions = 2\n"
        "policy.p = sliding %u/60s + sliding 9000/1h\n"
        "policy.other = funnel 5/1s + penalty 1d after 1/1h\n"
        "ingest-limit = %u/1s\n"
        "site.a.tz = Europe/Berlin\n"
        "site.a.origins = https://a.example\n"
        "site.a.dimensions = source,browser\n"
        "site.a.visitors-by = source\n"
        "site.a.props = plan\n"
        "page.1 = /user/* -> /user/:id\n"
        "section.docs = /docs/\n"
        "trusted-proxies = 10.0.0.0/8\n"
        "cors-origins = https://b.example\n"
        "ignore-ip = 192.0.2.0/24\n"
        "deny-sources = bad.example\n",
        b->redis, b->locks, b->tokens, limit, limit);
    write_file(b->config, text);
}

static void write_tokens(struct bench *b)
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    char hex[2 * sizeof(hash) + 1];
    char text[256];
    crypto_hash_sha256(hash, (const unsigned char *)"all", 3);
    sodium_bin2hex(hex, sizeof(hex), hash, sizeof(hash));
    (void)snprintf(
        text, sizeof(text), "%s ingest,read,admin all\n%.63sf read site=a,b some\n", hex, hex);
    write_file(b->tokens, text);
}

static const char *read_log(struct bench *b)
{
    FILE *file = fopen(b->log, "r");
    size_t n = file == NULL ? 0 : fread(b->text, 1, sizeof(b->text) - 1, file);
    b->text[n] = '\0';
    if (file != NULL) {
        (void)fclose(file);
    }
    return b->text;
}

static void start(struct bench *b, struct serving *p, unsigned long nth, unsigned long more)
{
    char flag[] = "--config";
    char *argv[] = {flag, b->config, NULL};
    serving_start(p, 2, argv, b->log, nth, more);
}

/* The status of the answer, until it is no 503: a connection to Redis may have to come back. */
static int ask(struct bench *b, const struct serving *p, const char *method, const char *target,
    const char *body)
{
    int status = 503;
    char head[512];
    (void)snprintf(head, sizeof(head),
        "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer all\r\n"
        "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
        method, target, strlen(body));
    for (int i = 0; i < 1000 && status == 503; i++) {
        service_wait_ms(i == 0 ? 0 : 10);
        status = service_ask_port(p->port, head, body, strlen(body), b->answer, sizeof(b->answer));
    }
    return status;
}

static void stop(struct bench *b, struct serving *p, unsigned long n)
{
    (void)kill(p->pid, SIGTERM);
    int status = serving_wait(p);
    if (status != 0) {
        found(b, n, "stopped with status %d: %.900s", status, read_log(b));
    }
    if (p->end->left > 0) {
        found(b, n, "%zu blocks are left, one of %zu bytes, number %lu", p->end->left, p->end->size,
            p->end->number);
    }
}

/* ---- a start ---- */

static void try_to_use(struct bench *b, const struct serving *p, unsigned long n)
{
    int status = ask(b, p, "POST", "/events", "{\"site\":\"a\",\"page\":\"/p\"}");
    if (status != 202) {
        found(b, n, "it serves, and POST /events is %d: %.300s", status, b->answer);
    }
    status = ask(b, p, "GET", "/pv?site=a&page=/p", "");
    if (status != 200) {
        found(b, n, "it serves, and GET /pv is %d: %.300s", status, b->answer);
    }
}

/* True if an allocation failed. */
static bool start_round(struct bench *b, unsigned long n, unsigned long more)
{
    struct serving p;
    b->rounds++;
    start(b, &p, n, more);
    if (p.port != 0) {
        bool struck = serving_stop_failing(&p);
        try_to_use(b, &p, n);
        stop(b, &p, n);
        return struck;
    }
    int status = serving_wait(&p);
    b->refused++;
    if (status != 1 && status != 2) {
        found(b, n, "the start ended with status %d", status);
    }
    if (strstr(read_log(b), "memory") == NULL && strstr(b->text, "thread cannot") == NULL) {
        found(b, n, "the start does not say why it ended: %.900s", b->text);
    }
    if (p.end->left > 0) {
        found(b, n, "%zu blocks are left of a start, one of %zu bytes, number %lu", p.end->left,
            p.end->size, p.end->number);
    }
    return p.end->struck;
}

static void try_starts(struct bench *b, unsigned step)
{
    unsigned long n = 1;
    bool struck = true;
    write_config(b, LIMIT);
    for (unsigned i = 0; struck && i < ROUNDS_MAX; i++) {
        struck = start_round(b, n, 0);
        if (i % 2 == 0) {
            (void)start_round(b, n, WHILE);
        }
        n += struck ? step : 0;
    }
    printf("a start: %lu allocations\n", n - 1);
    if (struck || n < 50) {
        found(b, n, "too many or too few allocations: nothing was tested");
    }
}

/* ---- SIGHUP ---- */

/* Lines of the log that tell of a reading. */
static unsigned n_readings(struct bench *b)
{
    unsigned n = 0;
    for (const char *at = read_log(b); (at = strstr(at, " again")) != NULL; at++) {
        n++;
    }
    return n;
}

/* Send the signal, and wait until both files were read.  False: it never told. */
static bool hang_up(struct bench *b, struct serving *p)
{
    unsigned before = n_readings(b);
    (void)kill(p->pid, SIGHUP);
    service_wait_ms(SIGHUP_MS);
    for (int i = 0; i < 1000 && n_readings(b) < before + 2; i++) {
        service_wait_ms(10);
    }
    return n_readings(b) >= before + 2;
}

static bool has_limit(struct bench *b, const struct serving *p, unsigned limit)
{
    char text[32];
    (void)snprintf(text, sizeof(text), ";q=%u;", limit);
    int status = ask(b, p, "GET", "/ratelimit/check?policy=p&key=k", "");
    return status == 204 && strstr(b->answer, text) != NULL;
}

/* True if an allocation failed. */
static bool sighup_round(
    struct bench *b, struct serving *p, unsigned *limit, unsigned long n, unsigned long more)
{
    unsigned next = *limit == LIMIT ? LIMIT + 1 : LIMIT;
    b->rounds++;
    if (truncate(b->log, 0) != 0) {
        perror(b->log);
        exit(2);
    }
    write_config(b, next);
    serving_fail(p, n, more);
    bool told = hang_up(b, p);
    bool struck = serving_stop_failing(p);
    bool stays = strstr(b->text, "that of before stays") != NULL;
    b->refused += stays;
    *limit = stays ? *limit : next;
    if (!told || !has_limit(b, p, *limit)) {
        found(b, n, "after SIGHUP, with a limit of %u: %.300s\n%.900s", *limit, b->answer,
            read_log(b));
    }
    if (stays && strstr(b->text, "memory") == NULL) {
        found(b, n, "it does not say why that of before stays: %.900s", b->text);
    }
    return struck;
}

static void try_sighups(struct bench *b, unsigned step)
{
    struct serving p;
    unsigned long n = 1;
    unsigned limit = LIMIT;
    bool struck = true;
    write_config(b, limit);
    start(b, &p, 0, 0);
    for (unsigned i = 0; p.port != 0 && struck && i < ROUNDS_MAX; i++) {
        struck = sighup_round(b, &p, &limit, n, i % 2 == 0 ? WHILE : 0);
        n += struck ? step : 0;
    }
    if (sighup_round(b, &p, &limit, 1UL << 30, 0) || strstr(b->text, "stay") != NULL) {
        found(b, n, "with memory enough SIGHUP changes nothing");
    }
    stop(b, &p, n);
    printf("a SIGHUP: %lu allocations\n", n - 1);
    if (n < 20) {
        found(b, n, "too few allocations: nothing was tested");
    }
}

int main(int argc, char **argv)
{
    static struct bench b;
    char directory[] = "/tmp/tallyd-oom-start-XXXXXX";
    long step = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
    if (step < 1 || mkdtemp(directory) == NULL || sodium_init() < 0) {
        fprintf(stderr, "usage: start [STEP]\n");
        return 2;
    }
    (void)snprintf(b.config, sizeof(b.config), "%s/tallyd.conf", directory);
    (void)snprintf(b.tokens, sizeof(b.tokens), "%s/tokens", directory);
    (void)snprintf(b.log, sizeof(b.log), "%s/log", directory);
    write_tokens(&b);
    service_start_redis(&b.service, REDIS_FSYNC_EVERYSEC);
    (void)snprintf(b.redis, sizeof(b.redis), "%s", service_redis_url(&b.service));
    (void)snprintf(b.locks, sizeof(b.locks), "%s", b.service.redis == NULL ? "" : b.redis);
    try_starts(&b, (unsigned)step);
    try_sighups(&b, (unsigned)step);
    service_stop_redis(&b.service);
    (void)unlink(b.config);
    (void)unlink(b.tokens);
    (void)unlink(b.log);
    (void)rmdir(directory);
    printf("out of memory: %u rounds, %u refused, %u faults\n", b.rounds, b.refused, b.faults);
    return b.faults == 0 ? 0 : 1;
}
