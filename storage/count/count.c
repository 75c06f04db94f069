/* count.c - page views, visitors, addresses and visits of a window: one question's figures.
 *
 * Each figure is added up, or estimated, from buckets that tile the window.  A question is planned
 * from a remembered state of each partition, of any age, and proved by what is read
 * (storage/read/README.md): one round trip as a rule, two after a rollup.  question.h says which
 * file does what. */
#include "storage/read/operation.h"

#include <stdlib.h>

#include "storage/count/plan.h"
#include "storage/count/read.h"
#include "storage/read/answers.h"
#include "storage/read/page_sets.h"
#include "storage/read/repeat.h"
#include "storage/read/listed_keys.h"

/* Count all keys of the plan in the answer; with explain, list them. */
static enum storage_err count_all_keys(struct count_question *q)
{
    struct count_job *job = q->job;
    enum storage_err err = STORAGE_OK;
    listed_keys_clear(&q->read);
    for (size_t i = 0; i < q->n_portions; i++) {
        const struct portion *portion = &q->portions[i];
        for (enum metric metric = 0; err == STORAGE_OK && metric < METRICS; metric++) {
            size_t n_keys = portion_keys(portion, metric);
            if (n_keys > 0) {
                err = listed_keys_add(&q->read, portion->partition, metric_kind(metric),
                    portion->pages, n_keys, &portion->cover);
            }
        }
    }
    if (err == STORAGE_TOO_BROAD) { /* the future is listed by minutes, so no step would help */
        job->used = STEP_NONE;
    }
    listed_keys_sort(&job->asked);
    return err;
}

/* The bound at_most of job/count_job.h.  If caps have put together visits but no page views, there
 * is a bound as well. */
static uint64_t count_at_most(struct count_question *q)
{
    const struct count_job *job = q->job;
    if (!job->all_metrics) {
        return tally_at_most(&q->tally, job->metric);
    }
    uint64_t hidden = job->values[METRIC_OTHER_PV];
    return hidden + job->values[METRIC_OTHER_VISITS] > 0 ? job->values[METRIC_PV] + hidden : 0;
}

/* Put the tally into the job. */
static enum storage_err count_conclude(struct count_question *q)
{
    struct count_job *job = q->job;
    struct storage_stats *stats = &q->read.core->stats;
    for (enum metric metric = 0; metric < METRICS; metric++) {
        bool asked = metrics_have(count_metrics(job), metric);
        job->values[metric] = asked ? tally_total(&q->tally, metric) : 0;
    }
    job->at_most = job->bounded ? count_at_most(q) : 0;
    if (job->step != STEP_NONE) {
        for (size_t i = 0; q->tally.n_points == 1 && i < METRICS; i++) {
            q->tally.points[0].values[i] = job->values[i];
        }
        free(job->points); /* an earlier answer may not have held, as a server had gone back */
        job->points = tally_take_points(&q->tally, &job->n_points);
    }
    atomic_fetch_add(&stats->queries, 1);
    atomic_fetch_add(&stats->query_keys, (int64_t)q->reads);
    return count_all_keys(q);
}

static enum storage_err count_attempt(void *data)
{
    struct count_question *q = data;
    struct window window = q->read.window;
    enum storage_err err = count_plan(q, &window);
    err = err == STORAGE_OK ? count_read(q) : err;
    if (err == STORAGE_OK) {
        q->job->asked.answered = window;
    }
    return err;
}

static enum storage_err count_answer(struct count_question *q)
{
    enum storage_err err = STORAGE_NOMEM;
    if (count_make_portions(q)) {
        err = proved_attempts(&q->read, count_attempt, q);
    }
    return err == STORAGE_OK ? count_conclude(q) : err;
}

enum storage_err count_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct count_job *count = &job->u.count;
    struct reader_scratch *scratch = &reader->scratch[STORAGE_COUNT];
    if (scratch->p == NULL) { /* also if memory was short the last time */
        *scratch =
            (struct reader_scratch){calloc(1, sizeof(struct count_question)), count_question_free};
    }
    struct count_question *q = scratch->p;
    if (q == NULL) {
        return STORAGE_NOMEM;
    }
    enum storage_err err = page_set_resolve(
        reader, job, &count->set, count->asked.site, &count->pages, &count->n_pages, ret_lost);
    if (err != STORAGE_OK) {
        return err;
    }
    q->job = count;
    err = proved_begin(&q->read, reader, job, &count->asked, ret_lost) ? count_answer(q)
                                                                       : STORAGE_NOMEM;
    tally_rest(&q->tally);
    proved_end(&q->read);
    return err;
}

/* ---- questions that are the same ---- */

/* (The zone matters only to a question with a step.) */
bool count_same(const struct storage_job *a, const struct storage_job *b)
{
    const struct count_job *x = &a->u.count;
    const struct count_job *y = &b->u.count;
    return window_question_same(&x->asked, &y->asked) && x->metric == y->metric &&
           x->all_metrics == y->all_metrics && x->visit_sums == y->visit_sums &&
           x->bounded == y->bounded && x->step == y->step &&
           (x->step == STEP_NONE || x->zone == y->zone) && x->set.name.n == 0 &&
           y->set.name.n == 0 && same_pages(x->pages, x->n_pages, y->pages, y->n_pages);
}

uint64_t count_hash(const struct storage_job *job)
{
    const struct count_job *count = &job->u.count;
    return question_hash(&count->asked, count->pages, count->n_pages,
        (uint64_t)count->metric * 32 + (uint64_t)count->step * 2 + count->all_metrics +
            (count->bounded ? 1024u : 0u));
}

bool count_share(const struct storage_job *from, struct storage_job *to)
{
    const struct count_job *answer = &from->u.count;
    struct count_job own = to->u.count;
    size_t n_bytes = answer->points == NULL ? 0 : answer->n_points * sizeof(*answer->points);
    struct count_point *points = n_bytes == 0 ? NULL : malloc(n_bytes);
    if (points == NULL && n_bytes > 0) {
        return false;
    }
    if (points != NULL) {
        memcpy(points, answer->points, n_bytes);
    }
    free(own.points);
    to->u.count = *answer; /* below follows what belongs to the job itself */
    to->u.count.asked.site = own.asked.site;
    to->u.count.asked.keys = NULL;
    to->u.count.asked.n_keys = 0;
    to->u.count.pages = own.pages;
    to->u.count.set = own.set;
    to->u.count.points = points;
    return true;
}

bool count_own(const struct storage_job *from, struct storage_job *to, struct arena *arena)
{
    struct count_job *count = &to->u.count;
    *count = from->u.count;
    count->points = NULL;
    count->asked.keys = NULL;
    count->asked.n_keys = 0;
    count->set = (struct page_set_ref){.resolved = NULL};
    return !count->asked.explain && from->u.count.set.name.n == 0 &&
           from->u.count.n_points <= ANSWER_ROWS && arena_copy(arena, &count->asked.site) &&
           answers_own_list(arena, &count->pages, count->n_pages);
}
