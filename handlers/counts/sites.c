/* sites.c - GET /sites: the sites that have had events and that the token may read. */
#include "handlers/routes.h"

#include <jansson.h>

#include "handlers/access/access.h"
#include "handlers/reply/csv.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/query.h"

static void release(struct http_exchange *exchange)
{
    storage_job_release(&exchange->job);
}

enum handler_result sites_start(struct http_exchange *exchange)
{
    if (!query_empty(exchange)) {
        return HANDLER_REPLY;
    }
    exchange->release = release;
    exchange->job.op = STORAGE_SITES;
    exchange->job.deadline_ms = exchange->request.deadline_ms;
    exchange->job.u.sites = (struct sites_job){0};
    return HANDLER_WAIT;
}

void sites_finish(struct http_exchange *exchange)
{
    const struct sites_job *job = &exchange->job.u.sites;
    if (exchange->job.err != STORAGE_OK) {
        problem_from_storage(&exchange->response, exchange->job.err, exchange->job.detail);
        return;
    }
    json_t *list = json_array();
    for (size_t i = 0; list != NULL && i < job->n_sites; i++) {
        if (access_has_site(exchange, job->sites[i])) {
            json_array_append_new(list, json_stringn(job->sites[i].p, job->sites[i].n));
        }
    }
    static const struct csv_shape shape = {"sites", {"sites"}};
    csv_reply(exchange, 200, json_pack("{s:o}", "sites", list), &shape);
}
