#include "storage/fetch.h"

#include <stdlib.h>
#include <string.h>

#include "storage/base/clock.h"

#define PERIOD_MS    5000 /* time to fetch the secret of the next period */
#define DELETIONS_MS 2000 /* time to fetch which sites are being deleted */

/* A job that fetches something, and the job that waits for what is fetched. */
struct fetch {
    struct storage_job asked;    /* storage's own job, which a reader does */
    int64_t *starts;             /* the starts of periods, owned; see periods_job */
    struct storage_job *waiting; /* the job that waits; NULL: none does */
    fetched_fn *fetched;
    void *data;
};

static void fetch_free(struct fetch *fetch)
{
    free(fetch->starts);
    free(fetch);
}

/* The reader has done the job: hand the job that waits on. */
static void fetch_done(struct storage_job *asked)
{
    struct fetch *fetch = asked->data;
    if (fetch->waiting != NULL) {
        memcpy(fetch->waiting->detail, asked->detail, sizeof(asked->detail));
        fetch->fetched(fetch->data, fetch->waiting, asked->err);
    }
    fetch_free(fetch);
}

/* A fetch for which no job waits.  NULL: no memory. */
static struct fetch *fetch_new(enum storage_op op, int64_t deadline_ms)
{
    struct fetch *fetch = calloc(1, sizeof(*fetch));
    if (fetch != NULL) {
        fetch->asked.op = op;
        fetch->asked.deadline_ms = deadline_ms;
        fetch->asked.done = fetch_done;
        fetch->asked.data = fetch;
    }
    return fetch;
}

/* Have the secrets of the @n periods that begin at @starts fetched; @starts is copied.  False: no
 * memory. */
static bool fetch_set_periods(struct fetch *fetch, const int64_t *starts, size_t n)
{
    fetch->starts = malloc(n * sizeof(*starts));
    if (fetch->starts != NULL) {
        memcpy(fetch->starts, starts, n * sizeof(*starts));
        fetch->asked.u.periods = (struct periods_job){fetch->starts, n};
    }
    return fetch->starts != NULL;
}

/* Hand @fetch to the readers.  On an error @fetch is freed. */
static enum storage_err fetch_submit(struct fetch *fetch, struct readers *readers)
{
    enum storage_err err = STORAGE_OK;
    if (!readers_submit(readers, &fetch->asked, &err)) {
        fetch_free(fetch);
    }
    return err;
}

enum storage_err fetch_periods(struct readers *readers, struct storage_job *job,
    const struct period_list *list, fetched_fn *fetched, void *data)
{
    struct fetch *fetch = fetch_new(STORAGE_PERIODS, job->deadline_ms);
    if (fetch == NULL) {
        return STORAGE_NOMEM;
    }
    fetch->waiting = job;
    fetch->fetched = fetched;
    fetch->data = data;
    if (!fetch_set_periods(fetch, list->missing, list->n_missing)) {
        fetch_free(fetch);
        return STORAGE_NOMEM;
    }
    return fetch_submit(fetch, readers);
}

void fetch_ahead(struct core *core, struct readers *readers)
{
    int64_t now_ms = monotonic_ms();
    int64_t start_s;
    if (period_secrets_ahead(
            &core->period_secrets, core->config.rotation, redis_clock_ms(&core->clock), &start_s)) {
        struct fetch *fetch = fetch_new(STORAGE_PERIODS, now_ms + PERIOD_MS);
        if (fetch != NULL && fetch_set_periods(fetch, &start_s, 1)) {
            (void)fetch_submit(fetch, readers);
        } else if (fetch != NULL) {
            fetch_free(fetch);
        }
    }
    if (deletions_look_due(&core->deletions, now_ms)) {
        struct fetch *fetch = fetch_new(STORAGE_DELETIONS, now_ms + DELETIONS_MS);
        if (fetch != NULL) {
            (void)fetch_submit(fetch, readers);
        }
    }
}
