/* topology_tool.c - storage/cluster's topology on standard input and output, for
 * integration/test_topology.py.
 *
 *     topology_tool URL PARTITIONS
 *
 * Output, a line whenever the map or what is served has changed, in milliseconds since the start:
 *
 *     MS version N unserved N owners HOST:PORT,-,..     one for each partition
 *     MS trouble TEXT                                   when a partition is not served
 *
 * Input, a line each: `lost HOST PORT`, `silent HOST PORT`, `up HOST PORT`, `moved PARTITION HOST
 * PORT` are hints; `node PARTITION` prints "node ID HOST:PORT"; `exit` ends.
 */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "storage/base/clock.h"
#include "storage/cluster/asker.h"
#include "storage/cluster/topology.h"

static struct partitions partitions;
static int64_t started_ms;

static void print_map(struct topology *t)
{
    char text[TROUBLE_SIZE];
    int64_t ms = monotonic_ms() - started_ms;
    printf("%" PRId64 " version %u unserved %u owners ", ms, topology_version(t),
        topology_n_unserved(t));
    for (unsigned p = 0; p < partitions.n; p++) {
        struct cluster_node node;
        char address[ADDRESS_TEXT_SIZE] = "-";
        if (topology_owner(t, p, &node)) {
            redis_address_print(&node.address, address, sizeof(address));
        }
        printf("%s%s", p == 0 ? "" : ",", address);
    }
    printf("\n");
    topology_trouble(t, text);
    if (text[0] != '\0') {
        printf("%" PRId64 " trouble %s\n", ms, text);
    }
    (void)fflush(stdout);
}

static void print_node(struct topology *t, unsigned partition)
{
    struct cluster_node node;
    char address[ADDRESS_TEXT_SIZE];
    if (partition < partitions.n && topology_owner(t, partition, &node)) {
        redis_address_print(&node.address, address, sizeof(address));
        printf("node %s %s\n", node.id, address);
    } else {
        printf("node nobody\n");
    }
    (void)fflush(stdout);
}

/* False: the end. */
static bool obey(struct topology *t, const char *line)
{
    struct redis_address address = {.port = 0};
    unsigned partition = 0;
    if (sscanf(line, "lost %255s %d", address.host, &address.port) == 2) {
        topology_hint(t, HINT_LOST, 0, &address);
    } else if (sscanf(line, "silent %255s %d", address.host, &address.port) == 2) {
        topology_hint(t, HINT_SILENT, 0, &address);
    } else if (sscanf(line, "up %255s %d", address.host, &address.port) == 2) {
        topology_hint(t, HINT_UP, 0, &address);
    } else if (sscanf(line, "moved %u %255s %d", &partition, address.host, &address.port) == 3) {
        topology_hint(t, HINT_MOVED, partition, &address);
    } else if (sscanf(line, "node %u", &partition) == 1) {
        print_node(t, partition);
    } else {
        return false;
    }
    return true;
}

static void serve(struct topology *t)
{
    eventfd_t ignored;
    struct pollfd polled[2] = {{.fd = 0, .events = POLLIN},
        {.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .events = POLLIN}};
    char line[400];
    if (polled[1].fd < 0 || !topology_watch(t, polled[1].fd)) {
        return;
    }
    print_map(t);
    while (poll(polled, 2, -1) >= 0) {
        if (polled[1].revents != 0) {
            (void)eventfd_read(polled[1].fd, &ignored);
            print_map(t);
        }
        if (polled[0].revents != 0 &&
            (fgets(line, sizeof(line), stdin) == NULL || !obey(t, line))) {
            return;
        }
    }
}

int main(int argc, char **argv)
{
    struct redis_url url;
    const char *fault = argc == 3 ? redis_url_parse(argv[1], &url) : "topology_tool URL PARTITIONS";
    unsigned long n = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    if (fault != NULL || n < 1 || n > PARTITIONS_MAX) {
        fprintf(stderr, "%s\n", fault != NULL ? fault : "too many partitions, or none");
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    (void)setvbuf(stdin, NULL, _IONBF, 0); /* poll() does not see what stdio has read ahead */
    started_ms = monotonic_ms();
    partitions_make((unsigned)n, &partitions);
    struct resolvers resolvers;
    resolvers_init(&resolvers);
    struct asker *asker = asker_new(&url, &partitions, &resolvers);
    struct topology *t = asker == NULL ? NULL : topology_new(&url, partitions.n, &asker_io, asker);
    if (t == NULL || !topology_start(t)) {
        fprintf(stderr, "out of memory\n");
        return 1;
    }
    serve(t);
    topology_stop(t);
    topology_free(t);
    asker_free(asker);
    resolvers_release(&resolvers);
    return 0;
}
