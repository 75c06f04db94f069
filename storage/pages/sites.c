/* sites.c - which sites have had events. */
#include "storage/read/answers.h"

#include <stdlib.h>

#include "storage/base/index.h"
#include "storage/read/pipeline.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

#define SCAN_COUNT "1000" /* names that a step looks at */

/* The sites that were found so far. */
struct list {
    struct sites_job *job;
    struct slice *names; /* owned; the bytes are in the job's arena; a site may be there twice */
    size_t n, capacity;
};

static int by_name(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

static bool add_site(struct list *list, struct slice site)
{
    if (!arena_copy(&list->job->arena, &site) ||
        !array_reserve(&list->names, &list->capacity, list->n, sizeof(*list->names))) {
        return false;
    }
    list->names[list->n++] = site;
    return true;
}

/* Where each partition's scan stands. */
struct cursors {
    struct cursor {
        char text[REPLY_CURSOR];
        bool is_over;
    } all[PARTITIONS_MAX];
};

static void ask_names(
    struct pipeline *p, const struct core *core, unsigned partition, const struct cursor *cursor)
{
    struct buffer *out = pipeline_command(p, partition, "SSCAN", 4);
    key_put(out, core->partitions.tag[partition], "sites");
    resp_text(out, cursor->text);
    resp_text(out, "COUNT");
    resp_text(out, SCAN_COUNT);
}

/* Take the reply to one step of a scan.  False: see the pipeline's err. */
static bool take_names(struct pipeline *p, struct list *list, struct cursor *cursor)
{
    const struct reply *reply = pipeline_take(p);
    if (reply == NULL) {
        return false;
    }
    const struct reply *names = reply_scan(reply, cursor->text);
    if (names == NULL) {
        return pipeline_foreign(p, "a list of sites");
    }
    for (size_t i = 0; i < names->n; i++) {
        if (!add_site(list, names->items[i].text)) {
            return pipeline_fail(p, STORAGE_NOMEM);
        }
    }
    cursor->is_over = strcmp(cursor->text, "0") == 0;
    return true;
}

/* Make one bounded step in each partition whose scan is not over; all are asked before the first
 * reply is taken.  True: another step is needed. */
static bool scan_step(
    struct pipeline *p, struct list *list, const struct core *core, struct cursors *cursors)
{
    bool more = false;
    for (unsigned i = 0; i < core->partitions.n; i++) {
        if (!cursors->all[i].is_over) {
            ask_names(p, core, i, &cursors->all[i]);
        }
    }
    if (!pipeline_send(p, false)) {
        return false;
    }
    for (unsigned i = 0; i < core->partitions.n; i++) {
        struct cursor *cursor = &cursors->all[i];
        if (!cursor->is_over && !take_names(p, list, cursor)) {
            return false;
        }
        more = more || !cursor->is_over;
    }
    return more;
}

/* Put the sites into the job, in order, each once.  False: no memory. */
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
    struct list list = {.job = &job->u.sites};
    struct pipeline p;
    job->u.sites.n_sites = 0;
    arena_clear(&job->u.sites.arena);
    pipeline_init(&p, &reader->session, job->deadline_ms);
    struct cursors *cursors = malloc(sizeof(*cursors));
    for (unsigned i = 0; cursors != NULL && i < PARTITIONS_MAX; i++) {
        cursors->all[i] = (struct cursor){.text = "0"};
    }
    while (cursors != NULL && scan_step(&p, &list, reader->core, cursors)) {
    }
    if (cursors == NULL || (p.err == STORAGE_OK && !conclude(&list))) {
        (void)pipeline_fail(&p, STORAGE_NOMEM);
    }
    free(cursors);
    free(list.names);
    return pipeline_answer(&p, job, ret_lost);
}

/* ---- one answer for many ---- */

bool sites_same(const struct storage_job *a, const struct storage_job *b)
{
    return a->op == b->op;
}

uint64_t sites_hash(const struct storage_job *job)
{
    return (uint64_t)job->op * 2 + 1;
}

bool sites_share(const struct storage_job *from, struct storage_job *to)
{
    const struct sites_job *answer = &from->u.sites;
    struct list list = {.job = &to->u.sites};
    bool ok = true;
    to->u.sites.n_sites = 0;
    for (size_t i = 0; ok && i < answer->n_sites; i++) {
        ok = add_site(&list, answer->sites[i]);
    }
    ok = ok && conclude(&list);
    free(list.names);
    return ok;
}

bool sites_own(const struct storage_job *from, struct storage_job *to, struct arena *arena)
{
    (void)arena; /* the question has no words */
    to->u.sites = (struct sites_job){.n_sites = 0};
    return from->u.sites.n_sites <= ANSWER_ROWS;
}
