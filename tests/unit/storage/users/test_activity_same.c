/* Questions about sets of users are answered together only where nothing tells them apart. */
#include <criterion/criterion.h>

#include "storage/operations.h"

#define SETS   2
#define COUNTS 2

/* A question, and all that it points to. */
struct asked {
    struct slice actions[2];
    struct activity_set sets[SETS];
    struct activity_count counts[COUNTS];
    struct storage_job job;
};

/* The users of two days who did one thing, and those of them who did another. */
static void make(struct asked *ret)
{
    *ret = (struct asked){
        .actions = {SLICE("buy"), SLICE("look")},
        .sets = {{.action = 0, .n_actions = 1, .days = {100, 2}},
            {.action = 1, .n_actions = 1, .days = {100, 2}, .narrows = true}},
        .counts = {{0, 0, 0}, {0, 1, 0}},
        .job = {.op = STORAGE_ACTIVITY},
    };
    ret->job.u.activity = (struct activity_job){
        .asked = {.site = SLICE("shop"),
            .actions = ret->actions,
            .n_actions = 2,
            .sets = ret->sets,
            .n_sets = SETS},
        .counts = ret->counts,
        .n_counts = COUNTS,
    };
}

/* Each change makes another question of it. */
static void other_site(struct asked *q)
{
    q->job.u.activity.asked.site = SLICE("shoe");
}

static void other_name(struct asked *q)
{
    q->actions[1] = SLICE("love");
}

static void fewer_names(struct asked *q)
{
    q->job.u.activity.asked.n_actions--;
}

static void fewer_sets(struct asked *q)
{
    q->job.u.activity.asked.n_sets--;
}

static void other_past(struct asked *q)
{
    q->job.u.activity.asked.new_days++;
}

static void other_action(struct asked *q)
{
    q->sets[1].action = 0;
}

static void more_actions(struct asked *q)
{
    q->sets[0].n_actions++;
}

static void other_first_day(struct asked *q)
{
    q->sets[1].days.first--;
}

static void more_days(struct asked *q)
{
    q->sets[1].days.n++;
}

static void least_days(struct asked *q)
{
    q->sets[1].min_days++;
}

static void each_day(struct asked *q)
{
    q->sets[1].all = true;
}

static void newcomers(struct asked *q)
{
    q->sets[1].only_new = true;
}

static void not_narrowed(struct asked *q)
{
    q->sets[1].narrows = false;
}

static const struct {
    const char *what;
    void (*change)(struct asked *question);
} changes[] = {
    {"site", other_site},
    {"name of an action", other_name},
    {"number of names", fewer_names},
    {"number of sets", fewer_sets},
    {"days before the period", other_past},
    {"action of a set", other_action},
    {"actions of a set", more_actions},
    {"first day", other_first_day},
    {"days", more_days},
    {"least days", least_days},
    {"each of the days", each_day},
    {"only who is new", newcomers},
    {"narrowed or not", not_narrowed},
};

#define CHANGES (sizeof(changes) / sizeof(changes[0]))

Test(activity_same, whatever_the_sets_depend_on_tells_questions_apart)
{
    const struct operation *sizes = &storage_operations[STORAGE_ACTIVITY];
    for (size_t i = 0; i < CHANGES; i++) {
        struct asked one, other;
        make(&one);
        make(&other);
        cr_expect(sizes->same(&one.job, &other.job), "the same, at other places of memory");
        cr_expect_eq(sizes->hash(&one.job), sizes->hash(&other.job));
        changes[i].change(&other);
        cr_expect_not(sizes->same(&one.job, &other.job), "%s", changes[i].what);
        cr_expect_not(sizes->same(&other.job, &one.job), "%s", changes[i].what);
    }
}

/* The sizes of the same sets, and of other intersections of these. */
Test(activity_same, so_do_the_sizes_that_are_asked_for)
{
    const struct operation *sizes = &storage_operations[STORAGE_ACTIVITY];
    struct asked one, other;
    make(&one);
    make(&other);
    other.counts[1] = (struct activity_count){0, 0, 0};
    cr_expect_not(sizes->same(&one.job, &other.job), "the second set");
    other.counts[1] = (struct activity_count){1, 1, 0};
    cr_expect_not(sizes->same(&one.job, &other.job), "the first set");
    other.counts[1] = (struct activity_count){0, 1, 77};
    cr_expect(sizes->same(&one.job, &other.job), "what was answered is no part of the question");
    other.job.u.activity.n_counts--;
    cr_expect_not(sizes->same(&one.job, &other.job));
}

Test(activity_same, what_is_asked_by_numbers_of_days_depends_on_the_same)
{
    const struct operation *often = &storage_operations[STORAGE_FREQUENCY];
    for (size_t i = 0; i < CHANGES; i++) {
        struct asked one, other;
        make(&one);
        make(&other);
        changes[i].change(&other);
        struct storage_job a = {.op = STORAGE_FREQUENCY};
        struct storage_job b = {.op = STORAGE_FREQUENCY};
        a.u.frequency.asked = b.u.frequency.asked = one.job.u.activity.asked;
        cr_expect(often->same(&a, &b));
        b.u.frequency.asked = other.job.u.activity.asked;
        cr_expect_not(often->same(&a, &b), "%s", changes[i].what);
    }
}

/* Another question's answer says, too, which day is the oldest that is kept. */
Test(activity_same, all_that_storage_has_written_is_shared)
{
    uint64_t users[] = {0, 8, 9}, others[3] = {0};
    struct asked one, other;
    make(&one);
    make(&other);
    one.counts[0].users = 5;
    one.counts[1].users = 3;
    one.job.u.activity.oldest_day = 42;
    cr_assert(storage_operations[STORAGE_ACTIVITY].share(&one.job, &other.job));
    cr_expect_eq(other.counts[0].users, 5);
    cr_expect_eq(other.counts[1].users, 3);
    cr_expect_eq(other.job.u.activity.oldest_day, 42);

    struct storage_job a = {.op = STORAGE_FREQUENCY};
    struct storage_job b = {.op = STORAGE_FREQUENCY};
    make(&one);
    a.u.frequency = (struct frequency_job){one.job.u.activity.asked, users, 42};
    b.u.frequency = (struct frequency_job){one.job.u.activity.asked, others, 0};
    cr_assert(storage_operations[STORAGE_FREQUENCY].share(&a, &b));
    cr_expect_arr_eq(others, users, sizeof(users));
    cr_expect_eq(b.u.frequency.oldest_day, 42);
}
