#include "storage/period_fetch.h"

#include <stdlib.h>
#include <string.h>

#include "storage/base/clock.h"

#define NEXT_MS 5000 /* for the secret of the next period */

/* Secrets that are being fetched, and what waits for them. */
struct period_wait {
    struct storage_job fetch;
    struct period_list list;
    struct storage_job *job; /* NULL: nothing waits */
    period_fetched_fn *fetched;
    void *data;
};

bool period_list_find(struct core *core, const struct write_job *write, struct period_list *ret)
{
    *ret = (struct period_list){0};
    return core->config.rotation == ROTATE_NEVER ||
           period_secrets_find(&core->period_secrets, core->config.rotation,
               redis_clock_ms(&core->clock), write->events, write->n, ret);
}

static void fetch_done(struct storage_job *fetch)
{
    struct period_wait *wait = fetch->data;
    if (wait->job != NULL) {
        memcpy(wait->job->detail, fetch->detail, sizeof(fetch->detail));
        wait->fetched(wait->data, wait->job, fetch->err);
    }
    period_list_release(&wait->list);
    free(wait);
}

enum storage_err period_fetch(struct readers *readers, struct storage_job *job,
    struct period_list list, int64_t deadline_ms, period_fetched_fn *fetched, void *data)
{
    enum storage_err err = STORAGE_NOMEM;
    struct period_wait *wait = calloc(1, sizeof(*wait));
    if (wait == NULL) {
        period_list_release(&list);
        return err;
    }
    *wait = (struct period_wait){.list = list, .job = job, .fetched = fetched, .data = data};
    wait->fetch.op = STORAGE_PERIODS;
    wait->fetch.deadline_ms = deadline_ms;
    wait->fetch.u.periods = (struct periods_job){list.missing, list.n_missing};
    wait->fetch.done = fetch_done;
    wait->fetch.data = wait;
    if (readers_submit(readers, &wait->fetch, &err)) {
        return STORAGE_OK;
    }
    period_list_release(&wait->list);
    free(wait);
    return err;
}

void period_fetch_next(struct core *core, struct readers *readers)
{
    struct period_list list = {.n_missing = 1};
    int64_t start_s;
    if (!period_secrets_ahead(
            &core->period_secrets, core->config.rotation, redis_clock_ms(&core->clock), &start_s)) {
        return;
    }
    list.missing = malloc(sizeof(*list.missing));
    if (list.missing != NULL) {
        *list.missing = start_s;
        (void)!period_fetch(readers, NULL, list, monotonic_ms() + NEXT_MS, NULL, NULL);
    }
}
