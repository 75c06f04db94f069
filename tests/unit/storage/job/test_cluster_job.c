#include "storage/job/cluster_job.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(cluster_job, .timeout = 60);

static struct cluster_server whole_server(void)
{
    return (struct cluster_server){.address = "a:1",
        .is_answering = true,
        .n_partitions = 4,
        .n_replicas = 1,
        .replicas = {{.address = "b:1", .is_online = true}}};
}

static size_t n_advice(const struct cluster_job *job)
{
    char text[512];
    size_t n = 0;
    while (cluster_advice(job, n, text, sizeof(text))) {
        cr_assert(strlen(text) > 20 && strlen(text) < sizeof(text) - 1, "%s", text);
        n++;
    }
    return n;
}

Test(cluster_job, ok_needs_no_advice)
{
    struct cluster_server server = whole_server();
    struct cluster_job job = {.kind = CLUSTER_OF_NODES,
        .ack_replicas = 1,
        .n_partitions = 4,
        .servers = &server,
        .n_servers = 1};
    cr_expect_str_eq(cluster_state_text(&job), "ok");
    cr_expect_eq(n_advice(&job), 0);
    server.n_replicas = 0;
    job.ack_replicas = 0;
    cr_expect_str_eq(cluster_state_text(&job), "degraded", "a failover needs a replica");
    job.kind = CLUSTER_OF_ONE;
    cr_expect_str_eq(cluster_state_text(&job), "ok", "one Redis needs none");
    job.ack_replicas = 1;
    cr_expect_str_eq(cluster_state_text(&job), "degraded");
}

Test(cluster_job, each_fault_has_its_sentence)
{
    struct cluster_server servers[2] = {whole_server(), whole_server()};
    struct cluster_job job = {.kind = CLUSTER_OF_NODES,
        .ack_replicas = 2,
        .n_partitions = 8,
        .n_unserved = 4,
        .n_stateless = 20,
        .servers = servers,
        .n_servers = 2};
    servers[0].n_open = 2;
    servers[1].is_answering = false;
    /* unserved; the partitions that are listed; too few replicas; two slots; does not answer */
    cr_expect_eq(n_advice(&job), 1 + CLUSTER_LISTED_MAX + 1 + 2 + 1);
    cr_expect_str_eq(cluster_state_text(&job), "degraded");
    servers[0].is_answering = false;
    cr_expect_str_eq(cluster_state_text(&job), "down");
}
