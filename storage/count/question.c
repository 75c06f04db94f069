#include "storage/count/question.h"

#include <stdlib.h>

#include "storage/base/index.h"
#include "storage/job/counted_name.h"

#define SCRATCH_KEPT ((size_t)64 * 1024) /* bytes of scratch whose memory is kept */

const struct slice count_whole_site = {"", 0};

enum key_kind metric_kind(enum metric metric)
{
    switch (metric) {
    case METRIC_PV:
    case METRIC_OTHER_PV:
        return KEY_PV;
    case METRIC_UV:
    case METRIC_OTHER_UV:
        return KEY_UV;
    case METRIC_IPS:
    case METRIC_OTHER_IPS:
        return KEY_IP;
    case METRIC_VISITS:
    case METRIC_ENGAGED:
    case METRIC_SECONDS:
    case METRIC_OTHER_VISITS:
        return KEY_VV;
    }
    return KEY_PV;
}

struct slice metric_name(enum metric metric, struct slice page)
{
    if (metric >= METRIC_OTHER_PV) {
        return counted_name_others(page);
    }
    return metric == METRIC_ENGAGED   ? NAME_VISITS_ENGAGED
           : metric == METRIC_SECONDS ? NAME_VISITS_SECONDS
                                      : page;
}

size_t portion_names(const struct portion *portion, enum metric metric)
{
    return metrics_have(METRICS_BESIDE, metric) ? 1 : portion->n_pages;
}

unsigned count_metrics(const struct count_job *job)
{
    bool bounded = job->bounded && job->n_pages > 0;
    if (!job->all_metrics) {
        return 1u << job->metric | (bounded ? 1u << metric_other(job->metric) : 0);
    }
    unsigned metrics = METRICS_ALL & ~METRICS_BESIDE;
    if (bounded) { /* the hidden page views bound the estimates, too: no sketch is needed */
        metrics |= METRICS_OTHER & ~METRICS_OTHER_SKETCHES;
    }
    return metrics | (job->visit_sums && job->n_pages == 0 ? METRICS_SUMS : 0);
}

size_t portion_keys(const struct portion *portion, enum metric metric)
{
    if (!metrics_have(portion->metrics & ~METRICS_BESIDE, metric)) {
        return 0;
    }
    return metric_is_sketch(metric) ? portion->n_pages : 1;
}

const struct portion *count_visits(const struct count_question *q)
{
    for (size_t i = 0; i < q->n_portions; i++) {
        if (portion_is_spread(&q->portions[i])) {
            return &q->portions[i];
        }
    }
    return NULL;
}

/* A metric that lies beside the pages has one name, whatever the pages are. */
struct cache_id portion_run_name(
    struct count_question *q, const struct portion *portion, enum metric metric, unsigned number)
{
    struct slice name = metric_name(metric, *portion->pages[0]);
    const struct slice *only = &name;
    bool beside = metrics_have(METRICS_BESIDE, metric);
    return run_name(q->read.core->cache, &q->scratch, number, metric_kind(metric),
        q->job->asked.site, beside ? &only : portion->pages, portion_names(portion, metric));
}

/* The ids are hashed without the partitions' numbers: which portions there are, in which order,
 * follows from the question, and the question is in the name of the value. */
struct ver portions_proof(struct count_question *q, unsigned metrics)
{
    struct buffer *scratch = &q->scratch;
    struct ver combined = {.n = 0};
    buffer_clear(scratch, SCRATCH_KEPT);
    for (size_t i = 0; i < q->n_portions; i++) {
        const struct portion *portion = &q->portions[i];
        const struct proved_partition *known = &q->read.known[portion->partition];
        const struct ver *ver = proof_ver(&known->view, PROOF_VER);
        if ((portion->metrics & metrics) == 0) {
            continue;
        }
        if (ver->n == 0 || (known->changed >> PROOF_VER & 1) != 0) {
            return combined;
        }
        buffer_append(scratch, (const char *)&ver->n, 1);
        buffer_append(scratch, ver->text, ver->n);
    }
    if (!scratch->failed) {
        struct cache_id id = cache_id(q->read.core->cache, scratch->p, scratch->n);
        combined.n = sizeof(id.bytes);
        memcpy(combined.text, id.bytes, sizeof(id.bytes));
    }
    return combined;
}

size_t portion_reads(const struct portion *portion, unsigned metrics, size_t n)
{
    return n * portion->n_pages * (size_t)__builtin_popcount(metrics & ~METRICS_OTHER);
}

/* ---- memory ---- */

void portion_drop_plan(struct portion *portion)
{
    if (!portion->plan_lent) {
        free(portion->ends);
        cover_release(&portion->cover);
    }
    cover_init(&portion->cover);
    portion->ends = NULL;
    portion->ends_capacity = 0;
    portion->plan_lent = false;
}

void count_drop_rest(struct count_question *q)
{
    for (size_t i = 0; i < q->n_rest; i++) {
        runs_release(&q->rest[i].runs); /* a portion of q->portions owns the pages */
        cover_release(&q->rest[i].cover);
    }
    q->n_rest = 0;
}

static void drop_portions(struct count_question *q)
{
    count_drop_rest(q);
    for (size_t i = 0; i < q->n_portions; i++) {
        if (!q->portions[i].pages_lent) {
            free(q->portions[i].pages);
        }
        q->portions[i].runs.n = 0;
        portion_drop_plan(&q->portions[i]);
    }
    q->n_portions = 0;
}

void count_question_free(void *question)
{
    struct count_question *q = question;
    if (q != NULL) {
        drop_portions(q);
        for (size_t i = 0; i < q->n_runs_kept; i++) {
            runs_release(&q->portions[i].runs);
        }
        tally_release(&q->tally);
        proved_release(&q->read);
        runs_release(&q->found.runs);
        free(q->portions);
        free(q->rest);
        free(q->known);
        free(q->wholes);
        kept_parts_release(&q->parts);
        buffer_release(&q->scratch);
        free(q->pieces);
        free(q);
    }
}

/* ---- which partition is asked for which pages ---- */

static bool has_page(const struct portion *portion, struct slice page)
{
    for (size_t i = 0; i < portion->n_pages; i++) {
        if (slice_equal(*portion->pages[i], page)) {
            return true;
        }
    }
    return false;
}

static struct portion *new_portion(struct count_question *q, unsigned partition, unsigned metrics)
{
    if (!ARRAY_RESERVE(q, portions)) {
        return NULL;
    }
    struct portion *portion = &q->portions[q->n_portions++];
    struct remembered_runs runs = {0};
    if (q->n_portions <= q->n_runs_kept) {
        runs = portion->runs;
    } else {
        q->n_runs_kept = q->n_portions;
    }
    *portion = (struct portion){.partition = partition, .metrics = metrics, .runs = runs};
    cover_init(&portion->cover);
    return portion;
}

/* Ask a partition for a page.  A page that the question names twice is asked for once, because sums
 * must not count it twice.  Nor must sums count twice what caps put together, so only the first
 * portion of the partition asks for that.  False: no memory. */
static bool ask_partition(
    struct count_question *q, unsigned partition, unsigned metrics, const struct slice *page)
{
    struct portion *portion = NULL;
    for (size_t i = 0; i < q->n_portions; i++) {
        if (q->portions[i].partition != partition ||
            (q->portions[i].metrics | METRICS_OTHER) != (metrics | METRICS_OTHER)) {
            continue;
        }
        if (has_page(&q->portions[i], *page)) {
            return true;
        }
        portion = &q->portions[i];
    }
    bool sketches = (metrics & METRICS_SKETCHES) != 0;
    if (portion == NULL || (sketches && portion->n_pages == PORTION_PAGES)) {
        portion = new_portion(q, partition, portion == NULL ? metrics : metrics & ~METRICS_OTHER);
    }
    if (portion == NULL || !array_reserve(&portion->pages, &portion->pages_capacity,
                               portion->n_pages, sizeof(struct slice *))) {
        return false;
    }
    portion->pages[portion->n_pages++] = page;
    return true;
}

/* Ask all partitions of visitors for what the first one is asked for.  False: no memory. */
static bool spread_portion(struct count_question *q, unsigned metrics)
{
    const struct partitions *partitions = &q->read.core->partitions;
    unsigned home = visitor_partition_at(partitions, 0);
    size_t first = 0;
    while (q->portions[first].partition != home || q->portions[first].metrics != metrics) {
        first++;
    }
    for (unsigned i = 1; i < visitor_partitions(partitions->n); i++) {
        struct portion *portion = new_portion(q, visitor_partition_at(partitions, i), metrics);
        if (portion == NULL) {
            return false;
        }
        portion->pages = q->portions[first].pages;
        portion->n_pages = q->portions[first].n_pages;
        portion->pages_lent = true;
    }
    return true;
}

bool count_make_portions(struct count_question *q)
{
    const struct count_job *job = q->job;
    const struct partitions *partitions = &q->read.core->partitions;
    const struct slice *pages = job->n_pages == 0 ? &count_whole_site : job->pages;
    size_t n_pages = job->n_pages == 0 ? 1 : job->n_pages;
    unsigned own = count_metrics(job) & METRICS_OF_PAGE;
    unsigned spread = count_metrics(job) & ~METRICS_OF_PAGE;
    drop_portions(q);
    for (size_t i = 0; i < n_pages; i++) {
        unsigned home = name_partition(
            partitions, job->asked.site, pages[i], page_hash(job->asked.site, pages[i]));
        if ((own != 0 && !ask_partition(q, home, own, &pages[i])) ||
            (spread != 0 &&
                !ask_partition(q, visitor_partition_at(partitions, 0), spread, &pages[i]))) {
            return false;
        }
    }
    return spread == 0 || spread_portion(q, spread);
}
