#include "service/client/commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handlers/text/ascii.h"
#include "storage/base/clock.h"
#include "storage/inspect.h"
#include "storage/job/config.h"

#define DEADLINE_MS 10000
#define ERROR_TEXT  400

static const char usage[] =
    "usage: tallyd cluster status --redis URL\n"
    "       tallyd cluster reset-partition P --redis URL\n"
    "status: the servers that have the data, their replicas, what is wrong and what to do.  It "
    "writes nothing.\n"
    "reset-partition: give a partition whose data is lost a first state again, so that it counts "
    "anew.\n"
    "URL: redis-cluster://h1:6379,h2:6379, redis-sentinel://h1:26379,h2:26379/NAME, "
    "redis://h:6379, "
    "unix:/path\n";

static int complain(const char *what)
{
    (void)fprintf(stderr, "tallyd: cluster: %s\n%s", what, usage);
    return 2;
}

static void print_server(const struct cluster_job *job, const struct cluster_server *server)
{
    printf("%s  %s  %u partitions", server->address, server->is_answering ? "ok" : "away",
        server->n_partitions);
    if (job->kind == CLUSTER_OF_NODES) {
        printf("  %u slots", server->n_slots);
    }
    printf("\n");
    for (unsigned i = 0; i < server->n_replicas; i++) {
        const struct cluster_replica *r = &server->replicas[i];
        printf("    replica %s  %s  %" PRId64 " bytes behind\n", r->address,
            r->is_online ? "online" : "not online", r->lag_bytes);
    }
}

static int print_status(const char *url)
{
    char error[ERROR_TEXT];
    char text[512];
    struct storage_job job;
    if (!storage_inspect(url, monotonic_ms() + DEADLINE_MS, &job, error, sizeof(error))) {
        (void)fprintf(stderr, "tallyd: cluster: %s\n", error);
        return 1;
    }
    const struct cluster_job *c = &job.u.cluster;
    const char *state = cluster_state_text(c);
    printf("%s: %u partitions on %zu server%s\n", state, c->n_partitions, c->n_servers,
        c->n_servers == 1 ? "" : "s");
    for (size_t i = 0; i < c->n_servers; i++) {
        print_server(c, &c->servers[i]);
    }
    for (size_t i = 0; cluster_advice(c, i, text, sizeof(text)); i++) {
        printf("- %s\n", text);
    }
    int status = strcmp(state, "ok") == 0 ? 0 : 1;
    storage_job_release(&job);
    return status;
}

static int reset(const char *url, const char *partition)
{
    char error[ERROR_TEXT] = "no random bytes";
    char *end = NULL;
    unsigned long p = strtoul(partition, &end, 10);
    if (!ascii_is_digit(partition[0]) || *end != '\0' || p >= PARTITIONS_MAX) {
        return complain("P must be the number of a partition");
    }
    if (!storage_reset_partition(
            url, (unsigned)p, monotonic_ms() + DEADLINE_MS, error, sizeof(error))) {
        (void)fprintf(stderr, "tallyd: cluster: %s\n", error);
        return 1;
    }
    printf("partition %lu has a first state again: what is left in logs is counted in it\n", p);
    return 0;
}

int cluster_main(int argc, char **argv)
{
    const char *url = NULL;
    const char *words[2] = {NULL, NULL};
    size_t n = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            (void)fputs(usage, stdout);
            return 0;
        }
        if (strcmp(argv[i], "--redis") == 0) {
            url = argv[++i]; /* NULL behind the last argument */
        } else if (strncmp(argv[i], "--redis=", 8) == 0) {
            url = argv[i] + 8;
        } else if (argv[i][0] == '-' || n == 2) {
            char what[96];
            (void)snprintf(what, sizeof(what), "unexpected argument \"%.60s\"", argv[i]);
            return complain(what);
        } else {
            words[n++] = argv[i];
        }
    }
    if (url == NULL) {
        return complain("--redis URL is needed");
    }
    if (n == 1 && strcmp(words[0], "status") == 0) {
        return print_status(url);
    }
    if (n == 2 && strcmp(words[0], "reset-partition") == 0) {
        return reset(url, words[1]);
    }
    return complain("it can do status, and reset-partition P");
}
