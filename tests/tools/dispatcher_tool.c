/* dispatcher_tool.c - storage/core's dispatcher on standard input and output, for
 * integration/test_dispatcher.py.
 *
 *     dispatcher_tool URL PARTITIONS [pipeline]
 *
 * Input, a line each:
 *
 *     PARTITION single|multi|reads|ordered COMMAND WORD..[;COMMAND WORD..]    a group
 *     go MS                                                             send all, await all
 *
 * "{}" in a word stands for the partition's tag.  A group that is multi gets its MULTI and EXEC.
 * With `pipeline` the commands go through storage/read's pipeline, which knows no multi; all of one
 * `go` are ordered if the first group is.  Its "refused" means that a command had an error.
 * Output for each `go`: a line for each reply in order, and then "end" or the status by which it
 * ended early, "lost" or "late".  An error's line begins with "-".
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/clock.h"
#include "storage/read/pipeline.h"
#include "storage/redis/resp.h"
#include "storage/session/dispatcher.h"

static struct core core;
static struct dispatcher dispatcher;
static size_t n_awaited;

static void put_word(struct buffer *out, const char *word, const char *tag)
{
    char text[4096];
    const char *at = strstr(word, "{}");
    if (at == NULL) {
        resp_text(out, word);
        return;
    }
    (void)snprintf(text, sizeof(text), "%.*s{%s}%s", (int)(at - word), word, tag, at + 2);
    resp_text(out, text);
}

/* The words of @text, which is cut up. */
static void put_words(struct buffer *out, char *text, const char *tag)
{
    char *rest = NULL;
    for (char *w = strtok_r(text, " ", &rest); w != NULL; w = strtok_r(NULL, " ", &rest)) {
        put_word(out, w, tag);
    }
}

static size_t count_words(const char *text)
{
    size_t n = text[0] != '\0';
    for (; *text != '\0'; text++) {
        n += *text == ' ';
    }
    return n;
}

static void add_group(char *line)
{
    char *rest = NULL;
    unsigned partition = (unsigned)strtoul(line, &line, 10);
    const char *name = strtok_r(line, " ", &rest);
    enum dispatcher_kind kind = strcmp(name, "multi") == 0     ? DISPATCH_MULTI
                                : strcmp(name, "reads") == 0   ? DISPATCH_READS
                                : strcmp(name, "ordered") == 0 ? DISPATCH_ORDERED
                                                               : DISPATCH_SINGLE;
    struct buffer *out = dispatcher_begin(&dispatcher, partition, kind);
    size_t n = 0;
    char *more = NULL;
    if (kind == DISPATCH_MULTI) {
        resp_command(out, "MULTI", NULL);
    }
    for (char *c = strtok_r(rest, ";", &more); c != NULL; c = strtok_r(NULL, ";", &more)) {
        resp_head(out, count_words(c));
        put_words(out, c, core.partitions.tag[partition]);
        n++;
    }
    if (kind == DISPATCH_MULTI) {
        resp_command(out, "EXEC", NULL);
    }
    if (!dispatcher_end(&dispatcher, kind == DISPATCH_MULTI ? n + 2 : n)) {
        exit(1);
    }
    n_awaited += kind == DISPATCH_ORDERED ? n : 1;
}

static void print_reply(const struct reply *reply)
{
    switch (reply->type) {
    case REPLY_NIL:
        printf("nil");
        break;
    case REPLY_INTEGER:
        printf("%lld", (long long)reply->integer);
        break;
    case REPLY_ARRAY:
        for (size_t i = 0; i < reply->n; i++) {
            printf("%s", i == 0 ? "" : " ");
            print_reply(&reply->items[i]);
        }
        break;
    case REPLY_ERROR:
        printf("-");
        /* fall through */
    case REPLY_TEXT:
    case REPLY_STATUS:
        printf("%s", reply->text.p);
        break;
    }
}

static void go(int64_t ms)
{
    int64_t deadline_ms = monotonic_ms() + ms;
    enum redis_status status = REDIS_OK_STATUS;
    dispatcher_send(&dispatcher, deadline_ms);
    for (; status == REDIS_OK_STATUS && n_awaited > 0; n_awaited--) {
        const struct reply *reply = NULL;
        status = dispatcher_await(&dispatcher, deadline_ms, &reply);
        if (status == REDIS_OK_STATUS) {
            print_reply(reply);
            printf("\n");
        }
    }
    n_awaited = 0;
    printf("%s\n", status == REDIS_OK_STATUS ? "end" : status == REDIS_LOST ? "lost" : "late");
    (void)fflush(stdout);
}

/* ---- the pipeline ---- */

static struct session session;
static struct pipeline pipeline;
static bool is_begun;

static void add_commands(char *line)
{
    char *rest = NULL;
    char *more = NULL;
    unsigned partition = (unsigned)strtoul(line, &line, 10);
    const char *kind = strtok_r(line, " ", &rest);
    if (!is_begun) {
        pipeline_init(&pipeline, &session, INT64_MAX);
        is_begun = true;
        if (strcmp(kind, "ordered") == 0) {
            pipeline_keep_order(&pipeline);
        }
    }
    for (char *c = strtok_r(rest, ";", &more); c != NULL; c = strtok_r(NULL, ";", &more)) {
        char *words = NULL;
        const char *name = strtok_r(c, " ", &words);
        struct buffer *out = pipeline_command(&pipeline, partition, name, count_words(words));
        put_words(out, words, core.partitions.tag[partition]);
        n_awaited++;
    }
}

static void pipeline_go(int64_t ms)
{
    bool lost = false;
    const struct reply *reply = NULL;
    pipeline.deadline_ms = monotonic_ms() + ms;
    bool ok = pipeline_send(&pipeline, false);
    for (; ok && n_awaited > 0 && (reply = pipeline_take(&pipeline)) != NULL; n_awaited--) {
        print_reply(reply);
        printf("\n");
    }
    n_awaited = 0;
    is_begun = false;
    enum storage_err err = pipeline_end(&pipeline, &lost);
    printf("%s\n", err == STORAGE_OK ? "end" : lost ? "lost" : "refused");
    (void)fflush(stdout);
}

int main(int argc, char **argv)
{
    static char line[1 << 20];
    const char *error;
    (void)signal(SIGPIPE, SIG_IGN);
    core_init(&core);
    partitions_make(argc >= 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 1, &core.partitions);
    bool is_pipeline = argc == 4;
    if (argc < 3 || !servers_start(&core, argv[1], &error)) {
        return 2;
    }
    dispatcher_init(&dispatcher, &core, &(struct redis_look){.silence_ms = 3000});
    session.dispatcher = &dispatcher;
    while (fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "go ", 3) == 0) {
            (is_pipeline ? pipeline_go : go)(strtoll(line + 3, NULL, 10));
        } else {
            (is_pipeline ? add_commands : add_group)(line);
        }
    }
    dispatcher_release(&dispatcher);
    servers_stop(&core);
    core_release(&core);
    return 0;
}
