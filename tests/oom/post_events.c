/* post_events.c - POST /events with every single allocation failing once.
 *
 *	post_events [STEP]
 *
 * For each kind of request, and for n = 1, 1 + STEP, ..: a fresh service (HTTP server, handlers,
 * storage) on a real Redis; the n-th allocation from the request's arrival on fails, in another
 * round all from there on for a while; the request is sent.  It must be answered, 202 or an honest
 * 503 (and with a key it must then pass), its events counted as the answer says, and nothing may be
 * left when the service is closed.  Done when the request makes fewer than n allocations.
 * The last line says what was found; the status is 1 if anything was.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/oom/failing_alloc.h"
#include "tests/oom/service.h"

#define BODY_MAX   SERVICE_BODY_MAX
#define ROUNDS_MAX 2000
#define WHILE      12 /* allocations that fail together, in every other round */

struct kind {
    const char *name, *type, *query;
    unsigned events, rejects;
    bool keyed, late;
    bool named;      /* events with a name instead of page views */
    unsigned sparse; /* only every so manyth allocation fails */
};

static const struct kind kinds[] = {
    {"one event", "application/json", "", 1, 0, false, false, false, 1},
    {"an array with faults", "application/json", "", 40, 7, false, false, false, 1},
    {"a large NDJSON", "application/x-ndjson", "?strict=0", 3000, 0, false, false, false, 1},
    {"late events", "application/json", "", 60, 0, false, true, false, 1},
    {"one event with a key", "application/json", "", 1, 0, true, false, false, 1},
    {"an array with faults and a key", "application/json", "", 40, 7, true, false, false, 1},
    {"a large NDJSON with a key", "application/x-ndjson", "", 3000, 0, true, true, false, 1},
    {"named events", "application/json", "", 40, 7, false, false, true, 1},
    {"named events with a key", "application/json", "", 40, 0, true, false, true, 1},
    {"the first of the day", "application/json", "?first=1", 20, 3, true, false, false, 10},
};

/* The same where Redis cannot go back.  Where it can, an answer takes three seconds. */
static const struct kind synced_kinds[] = {
    {"the first of the day, synced", "application/json", "?first=1", 20, 3, true, false, false, 1},
};

struct bench {
    struct service service;
    char *body;
    size_t body_n;
    char page[64];
    unsigned rounds, faults, refused, silent;
};

static void found(struct bench *b, const struct kind *kind, unsigned long n, const char *what)
{
    b->faults++;
    printf("%s, allocation %lu: %s\n", kind->name, n, what);
}

/* ---- requests ---- */

static int post(struct bench *b, const struct kind *kind, const char *key)
{
    char head[512];
    char answer[65536];
    (void)snprintf(head, sizeof(head),
        "POST /events%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: %s\r\n%s%s%s"
        "Content-Length: %zu\r\n\r\n",
        kind->query, kind->type, key != NULL ? "Idempotency-Key: " : "", key != NULL ? key : "",
        key != NULL ? "\r\n" : "", b->body_n);
    return service_ask(&b->service, head, b->body, b->body_n, answer, sizeof(answer));
}

/* Events of the round's name; -1 if that could not be asked. */
static long counted(struct bench *b, const struct kind *kind)
{
    char head[512];
    char answer[65536];
    (void)snprintf(head, sizeof(head),
        "GET /pv?%s=%s&from=now-20d/h HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        kind->named ? "event" : "page", b->page);
    int status = 0;
    for (int i = 0; status != 200 && i < 500; i++) { /* its own connection may have to come back */
        if (i > 0) {
            service_wait_ms(10);
        }
        status = service_ask(&b->service, head, NULL, 0, answer, sizeof(answer));
    }
    const char *pv = strstr(answer, "\"pv\":");
    return status == 200 && pv != NULL ? strtol(pv + 5, NULL, 10) : -1;
}

static void put(struct bench *b, const char *text)
{
    size_t n = strlen(text);
    memcpy(b->body + b->body_n, text, n);
    b->body_n += n;
}

static void make_body(struct bench *b, const struct kind *kind, int64_t now_s)
{
    bool lines = strcmp(kind->type, "application/x-ndjson") == 0;
    char text[256];
    b->body_n = 0;
    put(b, lines ? "" : "[");
    for (unsigned i = 0; i < kind->events + kind->rejects; i++) {
        put(b, i == 0 ? "" : lines ? "\n" : ",");
        if (i < kind->rejects) {
            put(b, "{\"page\":\"\"}");
            continue;
        }
        (void)snprintf(text, sizeof(text),
            "{\"%s\":\"%s\",\"user\":\"u%u\",\"ip\":\"10.0.%u.%u\",\"actions\":[\"a\"],\"ts\":%"
            "lld}",
            kind->named ? "event" : "page", b->page, i, i / 256 % 256, i % 256,
            (long long)(kind->late ? now_s - 86400 * (i % 19) : now_s));
        put(b, text);
    }
    put(b, lines ? "" : "]");
}

/* ---- rounds ---- */

static void judge(struct bench *b, const struct kind *kind, unsigned long n, int status, long is)
{
    char what[128];
    long all = (long)kind->events;
    /* 504: reconnecting took too long, as that needs memory as well */
    bool right = (status == 202 && is == all) || (status == 503 && is == 0) ||
                 (status == 504 && is >= 0 && is <= all) || (status == 0 && (is == 0 || is == all));
    b->refused += status == 503;
    b->silent += status == 0;
    if (!right) {
        (void)snprintf(what, sizeof(what), "answered %d, %ld of %ld counted", status, is, all);
        found(b, kind, n, what);
    }
}

/* The request, with its key, until it is a 202: 503 or 504 where the connection is not back yet, or
 * the machine stood still.  Returns the last status. */
static int until_accepted(struct bench *b, const struct kind *kind, const char *key)
{
    int status = post(b, kind, key);
    for (int i = 0; status != 202 && i < 1000; i++) {
        service_wait_ms(10);
        status = post(b, kind, key);
    }
    return status;
}

/* True if an allocation failed. */
static bool round_of(struct bench *b, const struct kind *kind, unsigned long n, unsigned long more)
{
    char key[64];
    unsigned long number = 0;
    size_t size = 0;
    b->rounds++;
    (void)snprintf(b->page, sizeof(b->page), "/p%u", b->rounds);
    (void)snprintf(key, sizeof(key), "key-%u", b->rounds);
    alloc_watch();
    service_open(&b->service);
    make_body(b, kind, storage_now_ms(b->service.app.storage) / 1000);
    alloc_fail(n, more);
    int status = post(b, kind, kind->keyed ? key : NULL);
    bool struck = alloc_stop();
    long is = counted(b, kind);
    judge(b, kind, n, status, is);
    if (kind->keyed) {
        status = status == 202 ? status : until_accepted(b, kind, key);
        int again = until_accepted(b, kind, key);
        is = counted(b, kind);
        if (again != 202 || is != (long)kind->events) {
            char what[128];
            (void)snprintf(what, sizeof(what), "repeated: answered %d, then %d; %ld of %u counted",
                status, again, is, kind->events);
            found(b, kind, n, what);
        }
    }
    service_close(&b->service);
    size_t left = alloc_left(&number, &size);
    if (left > 0) {
        char what[128];
        (void)snprintf(what, sizeof(what), "%zu blocks are left, one of %zu bytes, number %lu",
            left, size, number);
        found(b, kind, n, what);
    }
    return struck;
}

static void run_kind(struct bench *b, const struct kind *kind, unsigned step)
{
    unsigned long n = 1;
    bool struck = true;
    step *= kind->sparse;
    for (unsigned i = 0; struck && i < ROUNDS_MAX; i++) {
        struck = round_of(b, kind, n, 0);
        if (i % 2 == 0) {
            (void)round_of(b, kind, n, WHILE);
        }
        n += struck ? step : 0;
    }
    printf("%-32s %lu allocations\n", kind->name, n - 1);
    if (struck || n < 5) {
        found(b, kind, n, "too many or too few allocations: nothing was tested");
    }
}

static void run(
    struct bench *b, enum redis_fsync fsync, const struct kind *of, size_t n, unsigned step)
{
    service_start_redis(&b->service, fsync);
    for (size_t i = 0; i < n; i++) {
        run_kind(b, &of[i], step);
    }
    service_stop_redis(&b->service);
}

int main(int argc, char **argv)
{
    struct bench b = {.body = malloc(BODY_MAX)};
    long step = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
    if (step < 1 || b.body == NULL) {
        fprintf(stderr, "usage: post_events [STEP]\n");
        return 2;
    }
    run(&b, REDIS_FSYNC_EVERYSEC, kinds, sizeof(kinds) / sizeof(kinds[0]), (unsigned)step);
    run(&b, REDIS_FSYNC_ALWAYS, synced_kinds, sizeof(synced_kinds) / sizeof(synced_kinds[0]),
        (unsigned)step);
    free(b.body);
    printf("out of memory: %u rounds, %u answered 503, %u without an answer, %u faults\n", b.rounds,
        b.refused, b.silent, b.faults);
    return b.faults == 0 ? 0 : 1;
}
