/* activity_same.c - finds questions about sets of users that are the same, to answer them once. */
#include <string.h>

#include "storage/read/answers.h"
#include "storage/read/repeat.h"

static bool question_same(const struct activity_question *a, const struct activity_question *b)
{
    bool same = a->n_sets == b->n_sets && slice_equal(a->site, b->site) &&
                a->new_days == b->new_days &&
                same_pages(a->actions, a->n_actions, b->actions, b->n_actions);
    for (size_t i = 0; same && i < a->n_sets; i++) {
        const struct activity_set *x = &a->sets[i];
        const struct activity_set *y = &b->sets[i];
        same = x->action == y->action && x->n_actions == y->n_actions &&
               x->days.first == y->days.first && x->days.n == y->days.n &&
               x->min_days == y->min_days && x->all == y->all && x->only_new == y->only_new &&
               x->narrows == y->narrows;
    }
    return same;
}

static uint64_t hash_of(const struct activity_question *asked, uint64_t what)
{
    const struct window_question site = {
        .site = asked->site, .window = {asked->sets[0].days.first, (int64_t)asked->n_sets}};
    return question_hash(
        &site, asked->actions, asked->n_actions, what + asked->sets[0].days.n * 1024);
}

/* Have @asked point to copies of its slices and sets, which @arena owns. */
static bool own_question(struct activity_question *asked, struct arena *arena)
{
    struct activity_set *sets =
        asked->n_sets > ANSWER_ROWS ? NULL : arena_alloc(arena, asked->n_sets * sizeof(*sets));
    if (sets == NULL) {
        return false;
    }
    memcpy(sets, asked->sets, asked->n_sets * sizeof(*sets));
    asked->sets = sets;
    return arena_copy(arena, &asked->site) &&
           answers_own_list(arena, &asked->actions, asked->n_actions);
}

/* ---- sizes of sets ---- */

bool activity_same(const struct storage_job *a, const struct storage_job *b)
{
    const struct activity_job *x = &a->u.activity;
    const struct activity_job *y = &b->u.activity;
    bool same = x->n_counts == y->n_counts && question_same(&x->asked, &y->asked);
    for (size_t i = 0; same && i < x->n_counts; i++) {
        same = x->counts[i].a == y->counts[i].a && x->counts[i].b == y->counts[i].b;
    }
    return same;
}

uint64_t activity_hash(const struct storage_job *job)
{
    return hash_of(&job->u.activity.asked, 500000000 + job->u.activity.n_counts);
}

bool activity_share(const struct storage_job *from, struct storage_job *to)
{
    const struct activity_job *answer = &from->u.activity;
    struct activity_job *activity = &to->u.activity;
    for (size_t i = 0; i < answer->n_counts; i++) {
        activity->counts[i].users = answer->counts[i].users;
    }
    activity->oldest_day = answer->oldest_day;
    return true;
}

bool activity_own(const struct storage_job *from, struct storage_job *to, struct arena *arena)
{
    struct activity_job *activity = &to->u.activity;
    *activity = from->u.activity;
    size_t n = activity->n_counts;
    struct activity_count *counts =
        n > ANSWER_ROWS ? NULL : arena_alloc(arena, (n + 1) * sizeof(*counts));
    if (counts == NULL) {
        return false;
    }
    memcpy(counts, from->u.activity.counts, n * sizeof(*counts));
    activity->counts = counts;
    return own_question(&activity->asked, arena);
}

/* ---- on how many days ---- */

bool frequency_same(const struct storage_job *a, const struct storage_job *b)
{
    return question_same(&a->u.frequency.asked, &b->u.frequency.asked);
}

uint64_t frequency_hash(const struct storage_job *job)
{
    return hash_of(&job->u.frequency.asked, 600000000);
}

static size_t frequency_bytes(const struct frequency_job *frequency)
{
    return (frequency->asked.sets[0].days.n + 1) * sizeof(*frequency->users);
}

bool frequency_share(const struct storage_job *from, struct storage_job *to)
{
    const struct frequency_job *answer = &from->u.frequency;
    memcpy(to->u.frequency.users, answer->users, frequency_bytes(answer));
    to->u.frequency.oldest_day = answer->oldest_day;
    return true;
}

bool frequency_own(const struct storage_job *from, struct storage_job *to, struct arena *arena)
{
    struct frequency_job *frequency = &to->u.frequency;
    *frequency = from->u.frequency;
    size_t n = frequency_bytes(frequency);
    frequency->users = n > ANSWER_ROWS * sizeof(uint64_t) ? NULL : arena_alloc(arena, n);
    return frequency->users != NULL && own_question(&frequency->asked, arena);
}
