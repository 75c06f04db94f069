/* queries.c - `tallyd query` and `tallyd cluster` with every single allocation failing once.
 *
 *	queries [STEP [FIRST]]
 *
 * For each command, and for n = FIRST, FIRST + STEP, ..: the n-th allocation fails, in another
 * round that one and a dozen behind it.  The command must print what it prints with memory enough,
 * byte for byte, or end with status 1 and say that memory was short, and then print nothing that is
 * wrong: a beginning of the right text at the most.  No block may be left.
 *
 * jansson 2.14 writes behind the end of a string whose closing quote had no room.  It has none
 * where a string of 14 bytes, or 30 and so on, is the first so long: no answer here has one.
 * The last line says what was found; the status is 1 if anything was.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "service/client/commands.h"
#include "tests/oom/client.h"

#define ROUNDS_MAX 3000
#define WHILE      12 /* allocations that fail together, in every other round */

/* Windows that are over, so that answers are the same whenever they are asked for. */
#define OVER "--from now-3d/d --to now-1h/h"

#define ANY (-1)

struct command {
    client_command *run;
    const char *words; /* behind them comes the address of the server, or of Redis */
    int status;
};

static const struct command commands[] = {
    {query_main, "query uv " OVER " --url", 0},
    {query_main, "query stats --step 1d --tz Europe/Berlin --token t " OVER " --csv --url", 0},
    {query_main, "query pages --by uv " OVER " --url", 0},
    {query_main, "query pages --limit 3 " OVER " --csv --url", 0},
    {query_main, "query pages " OVER " --json --url", 0},
    {query_main, "query overlap --page /a --page /b " OVER " --url", 0},
    {query_main, "query retention --cohort %s --days 1 --cohorts 2 --url", 0},
    {query_main, "query events --step 1d " OVER " --csv --url", 0},
    {query_main, "query sites --url", 0}, {query_main, "query pages --by nothing --url", 1},
    {query_main, "query uv --from nonsense --url", 1},
    {cluster_main, "cluster status --redis", ANY}, /* the cluster's servers have no replicas */
    {cluster_main, "cluster reset-partition 1 --redis", 1}, /* it has its state */
};

struct bench {
    struct service service; /* its Redis is the server's */
    struct serving server;
    unsigned rounds, faults, starved;
    unsigned long first; /* allocation that fails */
    char log[64];
    struct client_end right, end;
};

static void found(struct bench *b, const struct command *c, unsigned long n, const char *what)
{
    b->faults++;
    printf("%s, allocation %lu: %s; status %d: %.900s%.900s\n", c->words, n, what, b->end.status,
        b->end.err, b->end.out);
}

static void run_command(const struct bench *b, const struct command *c, struct client_end *ret,
    unsigned long nth, unsigned long more)
{
    char line[512], server[64], date[16];
    struct tm day;
    time_t then = time(NULL) - 2 * 86400;
    const char *rest = strstr(c->words, "%s");
    int n = (int)(rest == NULL ? strlen(c->words) : (size_t)(rest - c->words));
    (void)strftime(date, sizeof(date), "%Y-%m-%d", gmtime_r(&then, &day));
    (void)snprintf(server, sizeof(server), "http://127.0.0.1:%u", b->server.port);
    (void)snprintf(line, sizeof(line), "%.*s%s%s %s", n, c->words, rest == NULL ? "" : date,
        rest == NULL ? "" : rest + 2,
        c->run == query_main ? server : service_redis_url(&b->service));
    client_run(ret, c->run, line, NULL, nth, more);
}

/* What talks to Redis takes a reply that it has no room for for a lost connection. */
static bool is_lost(const struct client_end *end)
{
    return end->status == 1 && (strstr(end->err, "tallyd: cluster: ") == end->err ||
                                   strstr(end->out, "  away  ") != NULL);
}

/* True if an allocation failed. */
static bool round_of(
    struct bench *b, const struct command *c, unsigned long nth, unsigned long more)
{
    struct client_end *end = &b->end;
    b->rounds++;
    run_command(b, c, end, nth, more);
    bool is_right = end->status == b->right.status && strcmp(end->out, b->right.out) == 0 &&
                    strcmp(end->err, b->right.err) == 0;
    bool starved = client_starved(end) || (c->run == cluster_main && is_lost(end));
    b->starved += starved;
    if (!is_right && !starved) {
        found(b, c, nth, "neither the right text nor out of memory");
    }
    if (!is_lost(end) && strncmp(end->out, b->right.out, strlen(end->out)) != 0) {
        found(b, c, nth, "what it printed is wrong");
    }
    if (end->left > 0) {
        char what[128];
        (void)snprintf(what, sizeof(what), "%zu blocks are left, one of %zu bytes, number %lu",
            end->left, end->size, end->number);
        found(b, c, nth, what);
    }
    return end->struck;
}

static void try_command(struct bench *b, const struct command *c, unsigned long step)
{
    unsigned long n = b->first;
    bool struck = true;
    run_command(b, c, &b->right, 0, 0);
    if (c->status != ANY && b->right.status != c->status) {
        b->end = b->right;
        found(b, c, 0, "with memory enough");
        return;
    }
    for (unsigned i = 0; struck && i < ROUNDS_MAX; i++) {
        struck = round_of(b, c, n, 0);
        if (i % 2 == 0) {
            (void)round_of(b, c, n, WHILE);
        }
        n += struck ? step : 0;
    }
    printf("%-90s %lu allocations\n", c->words, n - 1);
    if (struck || n < 5) {
        found(b, c, n, "too many or too few allocations: nothing was tested");
    }
}

/* Something to be asked for: events of three days, of which one page has a name that CSV quotes. */
static void fill(const struct bench *b)
{
    static char head[256], body[65536], answer[8192];
    size_t n = 0;
    int64_t now_s = (int64_t)time(NULL);
    for (int i = 0; i < 60; i++) {
        n += (size_t)snprintf(body + n, sizeof(body) - n,
            "{\"page\":\"/%c%s\",\"user\":\"u%d\",\"actions\":[\"active\"],\"ts\":%lld}\n"
            "{\"event\":\"e,%d\",\"visitor\":\"v%d\",\"ts\":%lld}\n",
            'a' + i % 5, i % 5 == 4 ? ",\\\"x\\\"" : "", i % 17,
            (long long)(now_s - 5400 * i - 7200), i % 3, i % 7,
            (long long)(now_s - 5400 * i - 7200));
    }
    (void)snprintf(head, sizeof(head),
        "POST /events HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: "
        "application/x-ndjson\r\nContent-Length: %zu\r\n\r\n",
        n);
    int status = service_ask_port(b->server.port, head, body, n, answer, sizeof(answer));
    if (status != 202) {
        fprintf(stderr, "POST /events: %d %s\n", status, answer);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    static struct bench b = {.log = "/tmp/tallyd-oom-queries-XXXXXX"};
    long step = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
    int fd = mkstemp(b.log);
    b.first = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    if (step < 1 || b.first < 1 || fd < 0) {
        fprintf(stderr, "usage: queries [STEP [FIRST]]\n");
        return 2;
    }
    (void)close(fd);
    service_start_redis(&b.service, REDIS_FSYNC_EVERYSEC);
    client_start_server(&b.server, &b.service, b.log);
    fill(&b);
    client_set_up();
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (getenv("OOM_REDIS") == NULL || commands[i].run == cluster_main) {
            try_command(&b, &commands[i], (unsigned long)step);
        }
    }
    int status = client_stop_server(&b.server);
    if (status != 0) {
        b.faults++;
        printf("the server ended with status %d\n", status);
    }
    service_stop_redis(&b.service);
    (void)unlink(b.log);
    printf("out of memory: %u rounds, %u ended for want of it, %u faults\n", b.rounds, b.starved,
        b.faults);
    return b.faults == 0 ? 0 : 1;
}
