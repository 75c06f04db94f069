/* dispatcher_tool.c - storage/core's dispatcher on standard input and output, for
 * integration/test_dispatcher.py.
 *
 *     dispatcher_tool URL PARTITIONS
 *
 * Input, a line each:
 *
 *     PARTITION single|multi|ordered COMMAND WORD..[;COMMAND WORD..]    a group
 *     go MS                                                             send all, await all
 *
 * "{}" in a word stands for the partition's tag.  A group that is multi gets its MULTI and EXEC.
 * Output for each `go`: a line for each reply in order, and then "end" or the status by which it
 * ended early, "lost" or "late".  An error's line begins with "-".
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/clock.h"
#include "storage/core/dispatcher.h"
#include "storage/redis/resp.h"

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

static void put_command(struct buffer *out, char *text, const char *tag)
{
    char *words[64];
    size_t n = 0;
    char *rest = NULL;
    for (char *w = strtok_r(text, " ", &rest); w != NULL && n < 64;
         w = strtok_r(NULL, " ", &rest)) {
        words[n++] = w;
    }
    resp_head(out, n);
    for (size_t i = 0; i < n; i++) {
        put_word(out, words[i], tag);
    }
}

static void add_group(char *line)
{
    char *rest = NULL;
    unsigned partition = (unsigned)strtoul(line, &line, 10);
    const char *name = strtok_r(line, " ", &rest);
    enum dispatcher_kind kind = strcmp(name, "multi") == 0     ? DISPATCH_MULTI
                                : strcmp(name, "ordered") == 0 ? DISPATCH_ORDERED
                                                               : DISPATCH_SINGLE;
    struct buffer *out = dispatcher_begin(&dispatcher, partition, kind);
    size_t n = 0;
    char *more = NULL;
    if (kind == DISPATCH_MULTI) {
        resp_command(out, "MULTI", NULL);
    }
    for (char *c = strtok_r(rest, ";", &more); c != NULL; c = strtok_r(NULL, ";", &more)) {
        put_command(out, c, core.partitions.tag[partition]);
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

int main(int argc, char **argv)
{
    static char line[1 << 20];
    const char *error;
    struct redis_look none = {NULL, NULL};
    (void)signal(SIGPIPE, SIG_IGN);
    core_init(&core);
    partitions_make(argc == 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 1, &core.partitions);
    if (argc != 3 || !servers_start(&core, argv[1], &error)) {
        return 2;
    }
    dispatcher_init(&dispatcher, &core, &none, 3000);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "go ", 3) == 0) {
            go(strtoll(line + 3, NULL, 10));
        } else {
            add_group(line);
        }
    }
    dispatcher_release(&dispatcher);
    servers_stop(&core);
    core_release(&core);
    return 0;
}
