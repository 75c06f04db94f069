#include "storage/job/cluster_job.h"

#include <stdio.h>

/* How many of a server's replicas receive what it writes. */
static unsigned online(const struct cluster_server *server)
{
    unsigned n = 0;
    for (unsigned i = 0; i < server->n_replicas; i++) {
        n += server->replicas[i].is_online;
    }
    return n;
}

static unsigned needed(const struct cluster_job *job)
{
    bool fails_over = job->kind != CLUSTER_OF_ONE;
    return job->ack_replicas > 0 ? job->ack_replicas : fails_over ? 1 : 0;
}

/* Write the advice number @i, from 0 on, about one server.  False: there is none. */
static bool server_advice(const struct cluster_job *job, const struct cluster_server *server,
    size_t i, char *text, size_t room)
{
    if (!server->is_answering) {
        (void)snprintf(
            text, room, "%s does not answer: look at the server and its log", server->address);
        return i == 0;
    }
    if (online(server) < needed(job)) {
        if (i == 0) {
            (void)snprintf(text, room,
                "%s has %u replicas that receive what it writes, and needs %u: add a replica, or "
                "look why one is away",
                server->address, online(server), needed(job));
            return true;
        }
        i--;
    }
    if (i >= server->n_open) {
        return false;
    }
    (void)snprintf(text, room,
        "slot %u %s %s, and writes to it wait until that ends: finish the move (redis-cli "
        "--cluster fix), and move slots with --cluster-pipeline 100",
        server->open[i].slot, server->open[i].leaves ? "is leaving" : "is coming to",
        server->address);
    return true;
}

static size_t n_server_advice(const struct cluster_job *job, const struct cluster_server *server)
{
    return server->is_answering ? (online(server) < needed(job)) + server->n_open : 1;
}

bool cluster_advice(const struct cluster_job *job, size_t i, char *text, size_t room)
{
    if (job->n_unserved > 0 && i-- == 0) {
        (void)snprintf(text, room,
            "%u of %u partitions have no server that answers: see CLUSTER NODES and the servers",
            job->n_unserved, job->n_partitions);
        return true;
    }
    unsigned listed = job->n_stateless < CLUSTER_LISTED_MAX ? job->n_stateless : CLUSTER_LISTED_MAX;
    if (i < listed) {
        (void)snprintf(text, room,
            "partition %u has lost its state: where its slot is torn, repair the cluster "
            "(redis-cli --cluster fix); where its data is lost, see `tallyd cluster "
            "reset-partition %u`",
            (unsigned)job->stateless[i], (unsigned)job->stateless[i]);
        return true;
    }
    i -= listed;
    for (size_t s = 0; s < job->n_servers; s++) {
        size_t n = n_server_advice(job, &job->servers[s]);
        if (i < n) {
            return server_advice(job, &job->servers[s], i, text, room);
        }
        i -= n;
    }
    return false;
}

const char *cluster_state_text(const struct cluster_job *job)
{
    char ignored[8];
    bool any = false;
    for (size_t s = 0; s < job->n_servers; s++) {
        any = any || job->servers[s].is_answering;
    }
    return !any ? "down" : cluster_advice(job, 0, ignored, sizeof(ignored)) ? "degraded" : "ok";
}
