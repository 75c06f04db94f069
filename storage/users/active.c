/* active.c - how many users are in sets, or in both of two sets; how many came on how many days. */
#include <stdlib.h>

#include "storage/sketch/bitmap.h"
#include "storage/users/day_sets.h"

/* Is each figure the size of one bitmap? */
static bool is_plain(const struct activity_job *job)
{
    bool plain = true;
    for (size_t i = 0; plain && i < job->asked.n_sets; i++) {
        const struct activity_set *set = &job->asked.sets[i];
        plain = set->days.n == 1 && set->n_actions == 1 && set->min_days == 0 && !set->only_new &&
                !set->narrows;
    }
    for (size_t i = 0; plain && i < job->n_counts; i++) {
        plain = job->counts[i].a == job->counts[i].b;
    }
    return plain;
}

/* Have Redis count the bits of each bitmap. */
static void count_plain(struct activity *a, struct activity_job *job)
{
    struct day_sets sets;
    if (day_sets_make_counted(&sets, a, &job->asked)) {
        day_sets_read_all(&sets, NULL, NULL);
        for (size_t i = 0; i < job->n_counts; i++) {
            job->counts[i].users = sets.counts[job->counts[i].a];
        }
    }
    day_sets_release(&sets);
}

/* Count the users in a piece of the sets. */
static void take_counts(
    const struct day_sets *sets, const struct day_place *place, size_t n, void *data)
{
    struct activity_job *job = data;
    (void)place;
    for (size_t i = 0; i < job->n_counts; i++) {
        struct activity_count *count = &job->counts[i];
        count->users +=
            bitmap_count_both(day_sets_users(sets, count->a), day_sets_users(sets, count->b), n);
    }
}

static void take_frequency(
    const struct day_sets *sets, const struct day_place *place, size_t n, void *data)
{
    const struct frequency_job *job = data;
    (void)place;
    sliced_histogram(&sets->days, n, job->users);
}

static void read_all(
    struct activity *a, const struct activity_question *asked, day_sets_take *take, void *data)
{
    struct day_sets sets;
    if (day_sets_make(&sets, a, asked, DAY_SETS_PIECE)) {
        day_sets_read_all(&sets, take, data);
    }
    day_sets_release(&sets);
}

enum storage_err activity_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct activity_job *asked = &job->u.activity;
    struct activity a;
    for (size_t i = 0; i < asked->n_counts; i++) {
        asked->counts[i].users = 0; /* the job may run again after a lost connection */
    }
    if (!day_sets_are_kept(reader->core, &asked->asked, &asked->oldest_day)) {
        return STORAGE_NOT_KEPT;
    }
    activity_begin(&a, reader->core, &reader->session, job->deadline_ms);
    if (is_plain(asked)) {
        count_plain(&a, asked);
    } else {
        read_all(&a, &asked->asked, take_counts, asked);
    }
    return day_sets_answer(&a, job, &asked->asked, &asked->oldest_day, ret_lost);
}

enum storage_err frequency_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct frequency_job *asked = &job->u.frequency;
    struct activity a;
    memset(asked->users, 0, (asked->asked.sets[0].days.n + 1) * sizeof(*asked->users));
    if (!day_sets_are_kept(reader->core, &asked->asked, &asked->oldest_day)) {
        return STORAGE_NOT_KEPT;
    }
    activity_begin(&a, reader->core, &reader->session, job->deadline_ms);
    read_all(&a, &asked->asked, take_frequency, asked);
    return day_sets_answer(&a, job, &asked->asked, &asked->oldest_day, ret_lost);
}
