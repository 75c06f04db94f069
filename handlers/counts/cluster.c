/* cluster.c - GET /cluster: which servers have the data, and which of them work. */
#include "handlers/routes.h"

#include "handlers/reply/problem.h"
#include "handlers/reply/query.h"
#include "handlers/reply/reply.h"

enum handler_result cluster_start(struct http_exchange *exchange)
{
    if (!query_empty(exchange)) {
        return HANDLER_REPLY;
    }
    exchange->job.op = STORAGE_CLUSTER;
    return HANDLER_WAIT;
}

static json_t *replicas_json(const struct cluster_server *server)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < server->n_replicas; i++) {
        const struct cluster_replica *r = &server->replicas[i];
        json_t *lag_s = r->lag_s < 0 ? json_null() : json_integer((json_int_t)r->lag_s);
        json_array_append_new(
            list, json_pack("{s:s,s:b,s:I,s:o}", "address", r->address, "online",
                      r->is_online ? 1 : 0, "lag_bytes", (json_int_t)r->lag_bytes, "lag_s", lag_s));
    }
    return list;
}

static json_t *open_json(const struct cluster_server *server)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < server->n_open; i++) {
        json_array_append_new(
            list, json_pack("{s:i,s:s}", "slot", (int)server->open[i].slot, "state",
                      server->open[i].leaves ? "migrating" : "importing"));
    }
    return list;
}

static json_t *nodes_json(const struct cluster_job *job)
{
    json_t *list = json_array();
    for (size_t i = 0; i < job->n_servers; i++) {
        const struct cluster_server *s = &job->servers[i];
        json_array_append_new(
            list, json_pack("{s:s,s:o,s:s,s:i,s:o,s:o,s:o}", "address", s->address, "id",
                      s->id[0] == '\0' ? json_null() : json_string(s->id), "state",
                      s->is_answering ? "ok" : "away", "partitions", (int)s->n_partitions, "slots",
                      job->kind == CLUSTER_OF_NODES ? json_integer(s->n_slots) : json_null(),
                      "open_slots", open_json(s), "replicas", replicas_json(s)));
    }
    return list;
}

static json_t *advice_json(const struct cluster_job *job)
{
    char text[512];
    json_t *list = json_array();
    for (size_t i = 0; cluster_advice(job, i, text, sizeof(text)); i++) {
        json_array_append_new(list, json_string(text));
    }
    return list;
}

static json_t *stateless_json(const struct cluster_job *job)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < job->n_stateless && i < CLUSTER_LISTED_MAX; i++) {
        json_array_append_new(list, json_integer(job->stateless[i]));
    }
    return list;
}

void cluster_finish(struct http_exchange *exchange)
{
    static const char *const kinds[] = {"one", "sentinel", "cluster"};
    const struct storage_job *job = &exchange->job;
    const struct cluster_job *c = &job->u.cluster;
    if (job->err != STORAGE_OK) {
        problem_from_storage(&exchange->response, job->err, job->detail);
        return;
    }
    reply_json(&exchange->response, 200,
        json_pack("{s:s,s:s,s:i,s:i,s:i,s:o,s:o,s:o}", "kind", kinds[c->kind], "state",
            cluster_state_text(c), "ack_replicas", (int)c->ack_replicas, "partitions",
            (int)c->n_partitions, "unserved", (int)c->n_unserved, "without_state",
            stateless_json(c), "nodes", nodes_json(c), "advice", advice_json(c)));
}
