/* sites.c - which sites have had events. */
#include "storage/read/operation.h"

#include <stdlib.h>

#include "storage/base/index.h"
#include "storage/read/pipeline.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

#define SCAN_COUNT "1000" /* names that a step looks at */

struct list {
    struct sites_job *job;
    struct slice *names; /* owned; some more than once */
    size_t n, capacity;
};

static int by_name(const void *a, const void *b)
{
    const struct slice *x = a;
    const struct slice *y = b;
    size_t n = x->n < y->n ? x->n : y->n;
    int order = memcmp(x->p, y->p, n);
    return order != 0 ? order : (x->n > y->n) - (x->n < y->n);
}

static bool add_site(struct list *list, struct slice site)
{
    char *copy = arena_alloc(&list->job->arena, site.n + 1);
    if (copy == NULL ||
        !array_reserve(&list->names, &list->capacity, list->n, sizeof(*list->names))) {
        return false;
    }
    memcpy(copy, site.p, site.n);
    list->names[list->n++] = (struct slice){copy, site.n};
    return true;
}

/* One partition's names, in bounded steps.  False: see the pipeline's err. */
static bool scan(
    struct pipeline *p, struct list *list, const struct partitions *partitions, unsigned partition)
{
    char cursor[24] = "0";
    struct key key;
    key_fixed(&key, partitions->tag[partition], "sites", SLICE(""));
    do {
        struct buffer *out = pipeline_command(p, partition, "SSCAN", 4);
        resp_word(out, key.p, key.n);
        resp_text(out, cursor);
        resp_text(out, "COUNT");
        resp_text(out, SCAN_COUNT);
        const struct reply *reply = pipeline_ask(p, false);
        if (reply == NULL) {
            return false;
        }
        if (reply->type != REPLY_ARRAY || reply->n != 2 ||
            reply->items[0].text.n >= sizeof(cursor)) {
            return pipeline_foreign(p, "a list of sites");
        }
        const struct reply *names = &reply->items[1];
        for (size_t i = 0; i < names->n; i++) {
            if (!add_site(list, names->items[i].text)) {
                return pipeline_fail(p, STORAGE_NOMEM);
            }
        }
        memcpy(cursor, reply->items[0].text.p, reply->items[0].text.n + 1);
    } while (strcmp(cursor, "0") != 0);
    return true;
}

/* In order, each once, into the job. */
static bool conclude(struct list *list)
{
    struct sites_job *job = list->job;
    job->sites = arena_alloc(&job->arena, (list->n + 1) * sizeof(*job->sites));
    if (job->sites == NULL) {
        return false;
    }
    if (list->n > 0) {
        qsort(list->names, list->n, sizeof(*list->names), by_name);
    }
    for (size_t i = 0; i < list->n; i++) {
        if (i == 0 || !slice_equal(list->names[i], list->names[i - 1])) {
            job->sites[job->n_sites++] = list->names[i];
        }
    }
    return true;
}

enum storage_err sites_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    const struct partitions *partitions = &reader->core->partitions;
    struct list list = {.job = &job->u.sites};
    struct pipeline p;
    bool ok = true;
    job->u.sites.n_sites = 0;
    arena_clear(&job->u.sites.arena);
    pipeline_init(&p, &reader->session, job->deadline_ms);
    for (unsigned i = 0; ok && i < partitions->n; i++) {
        ok = scan(&p, &list, partitions, i);
    }
    if (ok && !conclude(&list)) {
        (void)pipeline_fail(&p, STORAGE_NOMEM);
    }
    free(list.names);
    return pipeline_answer(&p, job, ret_lost);
}
