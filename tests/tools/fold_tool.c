/* fold_tool.c - storage/fold on standard input and output, for integration/test_fold.py.
 *
 *     fold_tool URL PARTITIONS VISIT_TIMEOUT_S
 *
 * It is the process of one log.  Input, a line each; output, a line for each line but `event`:
 *
 *     begin ID                  "done": the log ID is registered, and entries of it are put there
 *     foreign ID                the same, but the log is another process's: nothing stays in memory
 *     event AT SITE PAGE IP USER ACTION[,ACTION..]   one more event of the next entry; -: none
 *     entry N ARRIVAL_MS ERA    "done": entry N of the log, appended and, if it is ours, answered
 *     memory N ARRIVAL_MS ERA   the same in memory only
 *     stream N ARRIVAL_MS ERA   the same in Redis only
 *     fold MS                   "ok", or what kept it from folding all within MS
 *     stats                     "FOLDS EVENTS TRANSACTIONS AGAIN"
 */
#include "storage/fold/fold.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/arena.h"
#include "storage/base/clock.h"
#include "storage/log/chunk.h"
#include "storage/prepare/prepare.h"
#include "storage/redis/ask.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"
#include "storage/seen/fold.h"

#define EVENTS_MAX 60000

struct tool {
    struct core core;
    struct session session;
    struct unfolded unfolded;
    struct fold *fold;
    char id[LOG_ID_TEXT + 1];
    bool foreign;
    struct event *events;
    size_t n;
    struct slice actions[EVENTS_MAX];
    size_t n_actions;
};

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "fold_tool: %s\n", what);
    exit(1);
}

static void ask(struct tool *t, struct buffer *out)
{
    const struct reply *reply;
    if (redis_ask(t->session.redis, out, monotonic_ms() + 5000, &reply) != REDIS_OK_STATUS) {
        fail("the connection was lost");
    }
    if (reply->type == REPLY_ERROR) {
        fail(reply->text.p);
    }
    buffer_release(out);
}

static struct arena words; /* live as long as the tool */

static struct slice copy_word(const char *word)
{
    size_t n = strlen(word);
    char *copy = arena_alloc(&words, n + 1);
    if (copy == NULL) {
        fail("out of memory");
    }
    memcpy(copy, word, n + 1);
    return (struct slice){copy, n};
}

static void read_actions(struct tool *t, char *text, struct event *event)
{
    event->actions = &t->actions[t->n_actions];
    for (char *word = strtok(text, ","); word != NULL; word = strtok(NULL, ",")) {
        t->actions[t->n_actions++] = copy_word(word);
        event->n_actions++;
    }
}

static void read_event(struct tool *t, const char *line)
{
    static char site[65], page[2049], ip[64], user[257], actions[600];
    struct event *event = &t->events[t->n++];
    *event = (struct event){0};
    if (t->n == EVENTS_MAX || sscanf(line, "event %" SCNd64 " %64s %2048s %63s %256s %599s",
                                  &event->at_s, site, page, ip, user, actions) != 6) {
        fail(line);
    }
    event->site = copy_word(site);
    event->page = copy_word(page);
    if (strcmp(ip, "-") != 0) {
        event->address.len = 4;
        (void)inet_pton(AF_INET, ip, event->address.bytes);
    }
    if (strcmp(user, "-") != 0) {
        event->user = copy_word(user);
    }
    if (strcmp(actions, "-") != 0) {
        read_actions(t, actions, event);
    }
}

/* A head's value: n, era and time. */
static void set_head(struct tool *t, uint64_t n, const char *era, const char *command)
{
    char value[96];
    struct buffer out;
    struct key key;
    buffer_init(&out);
    key_fixed(&key, t->core.partitions.tag[0], "heads", SLICE(""));
    (void)snprintf(
        value, sizeof(value), "%" PRIu64 " %s %" PRId64, n, era, redis_clock_ms(&t->core.clock));
    resp_head(&out, 4);
    resp_text(&out, command);
    resp_word(&out, key.p, key.n);
    resp_text(&out, t->id);
    resp_text(&out, value);
    ask(t, &out);
}

static struct log_entry *make_entry(struct tool *t, uint64_t n, int64_t arrival_ms, const char *era)
{
    struct log_entry *entry = calloc(1, sizeof(*entry));
    const struct identity_keys keys = {.secret = atomic_load(&t->core.secret)};
    struct buffer chunk = {0};
    if (entry == NULL || !chunk_write(&chunk, t->events, t->n, &keys, NULL) ||
        !packed_write(&entry->packed, (struct slice){chunk.p, chunk.n})) {
        fail("out of memory");
    }
    buffer_release(&chunk);
    atomic_init(&entry->references, 1);
    memcpy(entry->id, t->id, sizeof(entry->id));
    (void)snprintf(entry->era, sizeof(entry->era), "%s", era);
    entry->n = n;
    entry->arrival_ms = arrival_ms;
    entry->n_plain = t->n;
    entry->state = ENTRY_ANSWERED;
    entry->answered_ms = monotonic_ms();
    entry->acknowledged_us = monotonic_us();
    t->n = t->n_actions = 0;
    return entry;
}

static void append(struct tool *t, const struct log_entry *entry)
{
    uint8_t head[ENTRY_HEAD];
    char name[32];
    struct buffer out;
    struct key key;
    buffer_init(&out);
    entry_print_head(entry, head);
    key_fixed(&key, t->core.partitions.tag[0], "log:", slice_of(t->id));
    (void)snprintf(name, sizeof(name), "%" PRIu64 "-0", entry->n);
    resp_head(&out, 7);
    resp_text(&out, "XADD");
    resp_word(&out, key.p, key.n);
    resp_text(&out, name);
    resp_text(&out, "h");
    resp_word(&out, head, sizeof(head));
    resp_text(&out, "p");
    resp_word(&out, entry->packed.p, entry->packed.n);
    ask(t, &out);
}

static void add_entry(struct tool *t, const char *line)
{
    char what[16], era[LOG_ID_TEXT + 1];
    uint64_t n;
    int64_t arrival_ms;
    if (sscanf(line, "%15s %" SCNu64 " %" SCNd64 " %16s", what, &n, &arrival_ms, era) != 4) {
        fail(line);
    }
    struct log_entry *entry = make_entry(t, n, arrival_ms, era);
    if (strcmp(what, "memory") != 0) {
        append(t, entry);
        set_head(t, n, era, "HSET");
    }
    if (strcmp(what, "stream") != 0 && !t->foreign) {
        if (!unfolded_put(&t->unfolded, 0, entry)) {
            fail("out of memory");
        }
        uint64_t most = unfolded_will_tell(&t->unfolded, 0, false); /* it is acknowledged */
        (void)most;
        fold_wake(t->fold);
    }
    entry_release(entry);
    puts("done");
}

static void begin_log(struct tool *t, const char *line)
{
    char what[16];
    if (sscanf(line, "%15s %16s", what, t->id) != 2) {
        fail(line);
    }
    t->foreign = strcmp(what, "foreign") == 0;
    set_head(t, 0, "-", "HSETNX");
    if (!t->foreign) {
        unfolded_begin(&t->unfolded, 0, t->id);
    }
    puts("done");
}

static void show_stats(struct tool *t)
{
    const struct storage_stats *stats = &t->core.stats;
    printf("%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n", atomic_load(&stats->folds),
        atomic_load(&stats->fold_events), atomic_load(&stats->fold_transactions),
        atomic_load(&stats->fold_again));
}

static void obey(struct tool *t, const char *line)
{
    if (strncmp(line, "event ", 6) == 0) {
        read_event(t, line);
        return;
    }
    if (strncmp(line, "begin ", 6) == 0 || strncmp(line, "foreign ", 8) == 0) {
        begin_log(t, line);
    } else if (strncmp(line, "fold ", 5) == 0) {
        int64_t ms = strtoll(line + 5, NULL, 10);
        puts(storage_err_text(fold_catch_up(t->fold, monotonic_us(), monotonic_ms() + ms)));
    } else if (strncmp(line, "stats", 5) == 0) {
        show_stats(t);
    } else {
        add_entry(t, line);
    }
    (void)fflush(stdout);
}

static void start(struct tool *t, char **argv)
{
    static struct prepared_data prepared;
    const char *fault;
    core_init(&t->core);
    t->core.config.partitions = (unsigned)strtoul(argv[2], NULL, 10);
    t->core.config.visit_timeout_s = strtoll(argv[3], NULL, 10);
    t->core.config.retention =
        (struct retention){.keep_s = {2 * 86400, 62 * 86400, 1100 * INT64_C(86400), KEEP_FOREVER}};
    t->core.config.seen =
        (struct seen_config){.on = true, .capacity = 100000, .error = 0.01, .keep_s = 90 * 86400};
    partitions_make(t->core.config.partitions, &t->core.partitions);
    if (!servers_start(&t->core, argv[1], &fault) || !site_zones_init(&t->core.sites)) {
        fail("no such Redis");
    }
    settings_print(t->core.config.partitions, &t->core.config.retention, 0, t->core.cfg);
    if (!session_open(&t->session, &t->core, monotonic_ms() + 5000) ||
        !session_prepare(&t->session, &t->core, &prepared, true, monotonic_ms() + 5000)) {
        fail(t->session.why);
    }
    unfolded_init(&t->unfolded, &t->core.stats);
    t->fold = fold_start(&t->core, &t->unfolded, NULL);
    if (t->fold == NULL) {
        fail("no thread");
    }
}

int main(int argc, char **argv)
{
    static struct tool tool;
    char *line = NULL;
    size_t capacity = 0;
    if (argc != 4 || sodium_init() < 0) {
        fprintf(stderr, "usage: fold_tool URL PARTITIONS VISIT_TIMEOUT_S\n");
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    tool.events = calloc(EVENTS_MAX, sizeof(*tool.events));
    if (tool.events == NULL) {
        fail("out of memory");
    }
    start(&tool, argv);
    puts("ready");
    (void)fflush(stdout);
    while (getline(&line, &capacity, stdin) > 0) {
        obey(&tool, line);
    }
    free(line);
    atomic_store(&tool.core.stopping, true);
    fold_stop(tool.fold);
    unfolded_release(&tool.unfolded);
    session_close(&tool.session);
    free(tool.events);
    core_release(&tool.core);
    return 0;
}
