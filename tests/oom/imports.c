/* imports.c - `tallyd import`, once and with --follow, with every single allocation failing once.
 *
 *	imports [STEP [FIRST]]
 *
 * For each kind of log, and for n = FIRST, FIRST + STEP, ..: the n-th allocation of an import
 * fails, in another round that one and the next.  The server is a real one.  The import must do all
 * of its work, or end with status 1 and say that memory was short; and its summary may not have
 * more than the server has.  The same import once more, with memory enough, must leave each view
 * counted once.  A follower is started a second time behind a rotation; what it must do is the
 * same, but when it is stopped it may leave something to the next one.
 * The last line says what was found; the status is 1 if anything was.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "service/client/commands.h"
#include "tests/oom/client.h"

#define ROUNDS_MAX 3000
#define MORE       1 /* behind one that fails, in every other round: it waits before each try */

/* A log: v is a view, f one of next year, which the server rejects, x no line of a log. */
struct kind {
    const char *name, *lines, *options;
    int status; /* of its import, with memory enough */
};

static const struct kind kinds[] = {
    {"views", "vvvvvvv", "--token t", 0},
    {"a view is rejected, and a line malformed", "vvvvxfv", "--include robot", 1},
    {"a request is rejected", "ffffv", "", 1},
};

struct bench {
    struct service service; /* its Redis is the server's */
    struct serving server;
    unsigned rounds, faults, starved;
    unsigned long first; /* allocation that fails */
    char directory[64], log[96], rotated[96], state[96], page[32];
    char right[CLIENT_TEXT], answer[8192];
    struct client_end end;
};

/* A round of @kind; the @nth allocation and @more behind it fail.  True if one did. */
typedef bool round_fn(
    struct bench *b, const struct kind *kind, unsigned long nth, unsigned long more);

__attribute__((format(printf, 4, 5))) static void found(
    struct bench *b, const struct kind *kind, unsigned long n, const char *format, ...)
{
    va_list args;
    b->faults++;
    printf("%s, allocation %lu: ", kind->name, n);
    va_start(args, format);
    (void)vprintf(format, args);
    va_end(args);
    printf("; status %d: %.900s%.900s\n", b->end.status, b->end.err, b->end.out);
}

/* ---- the log ---- */

static void write_log(const struct bench *b, const char *how, const char *lines)
{
    FILE *file = fopen(b->log, how);
    time_t now = time(NULL);
    for (unsigned i = 0; file != NULL && lines[i] != '\0'; i++) {
        char text[64];
        struct tm at;
        time_t then = lines[i] == 'f' ? now + 365 * 86400 : now - 600 - (time_t)i;
        (void)strftime(text, sizeof(text), "%d/%b/%Y:%H:%M:%S +0000", gmtime_r(&then, &at));
        (void)fprintf(file,
            "192.0.2.%u - - [%s] \"%s %s HTTP/1.1\" 200 5 \"-\" \"Mozilla/5.0 Firefox/120.0\"\n", i,
            text, lines[i] == 'x' ? "" : "GET", b->page);
    }
    if (file == NULL || fclose(file) != 0) {
        perror(b->log);
        exit(2);
    }
}

static unsigned n_views(const char *lines)
{
    unsigned n = 0;
    for (; *lines != '\0'; lines++) {
        n += *lines == 'v';
    }
    return n;
}

/* ---- the server ---- */

/* How many views of the page are counted. */
static unsigned n_counted(struct bench *b)
{
    char head[256];
    const char *at = NULL;
    (void)snprintf(head, sizeof(head),
        "GET /pv?page=%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b->page);
    for (int i = 0; i < 1000 && at == NULL; i++) {
        int status = service_ask_port(b->server.port, head, "", 0, b->answer, sizeof(b->answer));
        at = status == 200 ? strstr(b->answer, "\"pv\":") : NULL;
    }
    if (at == NULL) {
        fprintf(stderr, "GET /pv: %s\n", b->answer);
        exit(2);
    }
    return (unsigned)strtoul(at + 5, NULL, 10);
}

/* ---- an import ---- */

static void import_log(
    struct bench *b, const struct kind *kind, unsigned long nth, unsigned long more)
{
    char line[512];
    (void)snprintf(line, sizeof(line), "import --json --url http://127.0.0.1:%u %s%s%s",
        b->server.port, kind->options, kind->options[0] == '\0' ? "" : " ", b->log);
    client_run(&b->end, import_main, line, NULL, nth, more);
    b->starved += client_starved(&b->end);
}

/* A number of the summary; 0 if it is not there. */
static unsigned summed(const struct bench *b, const char *name)
{
    const char *at = strstr(b->end.out, name);
    return at == NULL ? 0 : (unsigned)strtoul(at + strlen(name), NULL, 10);
}

static void look_for_blocks(struct bench *b, const struct kind *kind, unsigned long n)
{
    if (b->end.left > 0) {
        found(b, kind, n, "%zu blocks are left, one of %zu bytes, number %lu", b->end.left,
            b->end.size, b->end.number);
    }
}

static bool import_round(
    struct bench *b, const struct kind *kind, unsigned long nth, unsigned long more)
{
    unsigned n = n_views(kind->lines);
    (void)snprintf(b->page, sizeof(b->page), "/i%u", b->rounds++);
    write_log(b, "w", kind->lines);
    import_log(b, kind, nth, more);
    bool struck = b->end.struck;
    bool is_whole = b->end.status == kind->status && strcmp(b->end.out, b->right) == 0;
    unsigned counted = n_counted(b);
    if (nth > 0 && !is_whole && !client_starved(&b->end)) {
        found(b, kind, nth, "neither done nor out of memory");
    }
    if (counted > n || (is_whole && counted < n) || summed(b, "\"counted\":") > counted) {
        found(b, kind, nth, "%u of %u views are counted", counted, n);
    }
    look_for_blocks(b, kind, nth);
    if (nth == 0) {
        (void)snprintf(b->right, sizeof(b->right), "%s", b->end.out);
    }
    import_log(b, kind, 0, 0);
    counted = n_counted(b);
    if (counted != n || b->end.status != kind->status ||
        summed(b, "\"counted\":") + summed(b, "\"counted_before\":") != n) {
        found(b, kind, nth, "the second import: %u of %u views are counted", counted, n);
    }
    return struck;
}

/* ---- a follower ---- */

static void follow_log(struct bench *b, unsigned long nth, unsigned long more)
{
    char line[512];
    (void)snprintf(line, sizeof(line),
        "import --follow --json --state %s --url http://127.0.0.1:%u %s", b->state, b->server.port,
        b->log);
    client_run(&b->end, import_main, line, "following ", nth, more);
    b->starved += client_starved(&b->end);
}

static void expect_followed(
    struct bench *b, const struct kind *kind, unsigned long n, unsigned views)
{
    unsigned counted = n_counted(b);
    if (b->end.status != 0 || counted != views || strstr(b->end.err, "missing") != NULL) {
        found(b, kind, n, "%u of %u views are counted", counted, views);
    }
}

/* With memory enough up to the rotation, and afterwards. */
static bool follow_round(
    struct bench *b, const struct kind *kind, unsigned long nth, unsigned long more)
{
    unsigned n = 3 + n_views(kind->lines);
    (void)snprintf(b->page, sizeof(b->page), "/f%u", b->rounds++);
    (void)unlink(b->state);
    (void)unlink(b->rotated);
    write_log(b, "w", "vv");
    follow_log(b, 0, 0);
    expect_followed(b, kind, nth, 2);
    write_log(b, "a", "v");
    if (rename(b->log, b->rotated) != 0) {
        perror(b->log);
        exit(2);
    }
    write_log(b, "wx", kind->lines);
    follow_log(b, nth, more);
    bool struck = b->end.struck;
    unsigned counted = n_counted(b);
    bool waits = b->end.status == 0 && strstr(b->end.err, "trying again") != NULL;
    if (counted > n || (b->end.status == 0 && counted < n && !waits)) {
        found(b, kind, nth, "%u of %u views are counted", counted, n);
    }
    if (b->end.status != 0 && !client_starved(&b->end)) {
        found(b, kind, nth, "neither followed nor out of memory");
    }
    look_for_blocks(b, kind, nth);
    follow_log(b, 0, 0);
    expect_followed(b, kind, nth, n);
    return struck;
}

static void try_kind(struct bench *b, const char *what, round_fn *round_of, const struct kind *kind,
    unsigned long step)
{
    unsigned long n = b->first;
    bool struck = true;
    (void)round_of(b, kind, 0, 0);
    for (unsigned i = 0; struck && i < ROUNDS_MAX; i++) {
        struck = round_of(b, kind, n, 0);
        if (i % 2 == 0) {
            (void)round_of(b, kind, n, MORE);
        }
        n += struck ? step : 0;
    }
    printf("%s: %s: %lu allocations\n", what, kind->name, n - 1);
    if (struck || n < 20) {
        found(b, kind, n, "too many or too few allocations: nothing was tested");
    }
}

static void remove_files(const struct bench *b)
{
    char path[128];
    static const char *const names[] = {
        "server", "access.log", "access.log.1", "state", "state.new"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", b->directory, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(b->directory);
}

int main(int argc, char **argv)
{
    static struct bench b = {.directory = "/tmp/tallyd-oom-imports-XXXXXX"};
    char log[96];
    static const struct kind rotated = {"behind a rotation", "vfv", "", 0};
    long step = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
    b.first = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    if (step < 1 || b.first < 1 || mkdtemp(b.directory) == NULL) {
        fprintf(stderr, "usage: imports [STEP [FIRST]]\n");
        return 2;
    }
    (void)snprintf(b.log, sizeof(b.log), "%s/access.log", b.directory);
    (void)snprintf(b.rotated, sizeof(b.rotated), "%s/access.log.1", b.directory);
    (void)snprintf(b.state, sizeof(b.state), "%s/state", b.directory);
    service_start_redis(&b.service, REDIS_FSYNC_EVERYSEC);
    (void)snprintf(log, sizeof(log), "%s/server", b.directory);
    client_start_server(&b.server, &b.service, log);
    client_set_up();
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        try_kind(&b, "import", import_round, &kinds[i], (unsigned long)step);
    }
    try_kind(&b, "import --follow", follow_round, &rotated, (unsigned long)step);
    int status = client_stop_server(&b.server);
    if (status != 0) {
        b.faults++;
        printf("the server ended with status %d\n", status);
    }
    service_stop_redis(&b.service);
    remove_files(&b);
    printf("out of memory: %u rounds, %u ended for want of it, %u faults\n", b.rounds, b.starved,
        b.faults);
    return b.faults == 0 ? 0 : 1;
}
