#include "storage/read/answers.h"

#include <stdlib.h>
#include <string.h>

#include "storage/base/clock.h"
#include "storage/base/cond.h"

struct answer {
    struct settled_moment moment; /* is_known: there is an answer */
    struct storage_job job;
    struct arena arena; /* holds the bytes of what the job asks */
};

struct answers {
    pthread_mutex_t lock;       /* guards all below */
    struct answer all[ANSWERS]; /* see answer_place() */
};

struct answers *answers_new(void)
{
    const char *test = getenv("TALLYD_TEST_ANSWERS");
    if (test != NULL && strcmp(test, "off") == 0) {
        return NULL;
    }
    struct answers *answers = calloc(1, sizeof(*answers));
    if (answers != NULL) {
        mutex_init(&answers->lock);
    }
    return answers;
}

static void answer_release(struct answer *answer)
{
    storage_job_release(&answer->job);
    arena_release(&answer->arena);
    *answer = (struct answer){.moment = {.is_known = false}};
}

void answers_free(struct answers *answers)
{
    if (answers == NULL) {
        return;
    }
    for (size_t i = 0; i < ANSWERS; i++) {
        answer_release(&answers->all[i]);
    }
    pthread_mutex_destroy(&answers->lock);
    free(answers);
}

static struct answer *answer_place(struct answers *answers, const struct storage_job *job)
{
    return &answers->all[job->question / 2 % ANSWERS]; /* the lowest bit of a hash is always set */
}

static bool answer_holds(const struct answer *answer, const struct reader *reader)
{
    const struct settled_moment *moment = &reader->settled.moment;
    return answer->moment.is_known && moment->is_known &&
           memcmp(&answer->moment.print, &moment->print, sizeof(moment->print)) == 0 &&
           answer->moment.minute == moment->minute &&
           session_stands_since(&reader->session) < answer->moment.read_us &&
           monotonic_us() < answer->moment.read_us + ANSWERS_US;
}

bool answers_recall(struct reader *reader, operation_same_fn *same, operation_share_fn *share,
    struct storage_job *job)
{
    struct answers *answers = reader->core->answers;
    if (answers == NULL) {
        return false;
    }
    pthread_mutex_lock(&answers->lock);
    const struct answer *answer = answer_place(answers, job);
    bool found = answer_holds(answer, reader) && answer->job.op == job->op &&
                 same(&answer->job, job) && share(&answer->job, job);
    pthread_mutex_unlock(&answers->lock);
    if (found) {
        atomic_fetch_add(&reader->core->stats.queries_unchanged, 1);
    }
    return found;
}

void answers_keep(struct reader *reader, operation_own_fn *own, operation_share_fn *share,
    const struct storage_job *job)
{
    struct answers *answers = reader->core->answers;
    const struct settled_moment *moment = &reader->settled.moment;
    if (answers == NULL || !moment->is_known ||
        session_stands_since(&reader->session) >= moment->read_us) {
        return;
    }
    struct answer fresh = {.moment = *moment, .job = {.op = job->op}};
    if (!own(job, &fresh.job, &fresh.arena) || !share(job, &fresh.job)) {
        answer_release(&fresh);
        return;
    }
    pthread_mutex_lock(&answers->lock);
    struct answer *place = answer_place(answers, job);
    struct answer before = *place;
    *place = fresh;
    pthread_mutex_unlock(&answers->lock);
    answer_release(&before);
}

bool answers_own_list(struct arena *arena, const struct slice **list, size_t n)
{
    struct slice *copy = n > ANSWER_NAMES ? NULL : arena_alloc(arena, (n + 1) * sizeof(*copy));
    for (size_t i = 0; copy != NULL && i < n; i++) {
        copy[i] = (*list)[i];
        if (!arena_copy(arena, &copy[i])) {
            return false;
        }
    }
    *list = copy;
    return copy != NULL;
}
