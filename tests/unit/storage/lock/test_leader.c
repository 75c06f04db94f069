/* What the leader's thread does beside its lock.  No Redis is there: the process never leads. */
#include "storage/lock/leader.h"

#include <criterion/criterion.h>

#include "storage/base/cond.h"

TestSuite(leader, .timeout = 60);

/* A job that is late, and what is looked at. */
struct scene {
    struct leader *leader;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t changed;
    struct storage_job job;
    bool handed_out;
    unsigned answers, looks;
};

static int64_t take_late(void *data, struct storage_job **ret_late)
{
    struct scene *s = data;
    pthread_mutex_lock(&s->lock);
    s->looks++;
    *ret_late = s->handed_out ? NULL : &s->job;
    s->handed_out = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return INT64_MAX;
}

/* It takes the chore's lock: if that were held here, the thread would wait for itself. */
static void on_done(struct storage_job *job)
{
    struct scene *s = job->data;
    leader_set_chore(s->leader, (struct leader_chore){take_late, s});
    pthread_mutex_lock(&s->lock);
    s->answers++;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static unsigned wait_for(struct scene *s, const unsigned *count, unsigned least)
{
    pthread_mutex_lock(&s->lock);
    while (*count < least) {
        cond_wait_until_ms(&s->changed, &s->lock, INT64_MAX);
    }
    unsigned n = *count;
    pthread_mutex_unlock(&s->lock);
    return n;
}

Test(leader, late_jobs_are_answered_under_no_lock)
{
    static struct core core;
    static struct scene s;
    const char *error = NULL;
    core_init(&core);
    mutex_init(&s.lock);
    cond_init(&s.changed);
    s.job = (struct storage_job){.op = STORAGE_ROLLUP_RUN, .done = on_done, .data = &s};
    s.leader = leader_start(&core, "", &error);
    cr_assert_not_null(s.leader, "%s", error);
    cr_expect_eq(leader_token(s.leader), 0);
    leader_set_chore(s.leader, (struct leader_chore){take_late, &s});
    leader_nudge(s.leader);
    (void)wait_for(&s, &s.answers, 1);
    cr_expect_eq(s.job.err, STORAGE_UNKNOWN);
    unsigned looks = wait_for(&s, &s.looks, 1);
    leader_nudge(s.leader);
    (void)wait_for(&s, &s.looks, looks + 1);
    leader_stop(s.leader);
    cr_expect_eq(s.answers, 1, "once");
    pthread_cond_destroy(&s.changed);
    pthread_mutex_destroy(&s.lock);
    core_release(&core);
}

Test(leader, lock_servers_must_be_urls)
{
    static struct core core;
    const char *error = NULL;
    core_init(&core);
    cr_expect_null(leader_start(&core, "redis://one,", &error));
    cr_expect_not_null(error);
    core_release(&core);
}
