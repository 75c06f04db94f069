/* active.c - how many users are in sets, and in two of them both; how many came on how many days. */
#include <stdlib.h>

#include "storage/redis/resp.h"
#include "storage/sketch/bitmap.h"
#include "storage/users/day_sets.h"

#define COUNT_PIECE (1024 * 1024) /* of BITCOUNT: 0.2 ms */
#define COUNT_AHEAD (4 * 1024 * 1024)

/* Is each figure that of one bitmap? */
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

static void ask_count(struct activity *a, const struct activity_job *job, unsigned partition,
    size_t number, uint64_t piece)
{
    struct key key;
    const struct activity_set *set = &job->asked.sets[job->counts[number].a];
    key_activity(&key, a->core->partitions.tag[partition], job->asked.site,
        job->asked.actions[set->action], set->days.first);
    struct buffer *out = pipeline_command(&a->pipe, partition, "BITCOUNT", 3);
    resp_word(out, key.p, key.n);
    resp_decimal(out, (int64_t)(piece * COUNT_PIECE));
    resp_decimal(out, (int64_t)((piece + 1) * COUNT_PIECE - 1));
}

/* Redis counts the bitmaps of one partition. */
static bool count_bitmaps(
    struct activity *a, struct activity_job *job, unsigned partition, uint64_t users)
{
    uint64_t bytes = (users + 7) / 8;
    uint64_t pieces = (bytes + COUNT_PIECE - 1) / COUNT_PIECE;
    uint64_t total = pieces * job->n_counts;
    uint64_t ahead = COUNT_AHEAD / (bytes < COUNT_PIECE ? bytes : COUNT_PIECE) + 1;
    uint64_t asked = 0;
    ahead = ahead > 1000 ? 1000 : ahead;
    for (uint64_t i = 0; i < total; i++) {
        uint64_t users_here = 0;
        for (; asked < total && asked < i + ahead; asked++) {
            ask_count(a, job, partition, (size_t)(asked / pieces), asked % pieces);
        }
        if (!pipeline_send(&a->pipe, false) || !pipeline_number(&a->pipe, &users_here)) {
            return false;
        }
        job->counts[i / pieces].users += users_here;
    }
    return true;
}

static bool count_plain(struct activity *a, struct activity_job *job)
{
    uint64_t users[PARTITIONS_MAX];
    bool ok = activity_sizes(a, job->asked.site, users);
    for (unsigned p = 0; ok && p < a->core->partitions.n; p++) {
        ok = users[p] == 0 || count_bitmaps(a, job, p, users[p]);
    }
    return ok;
}

/* A piece of the sets: count the users. */
static void take_counts(const struct day_sets *sets, size_t n, void *data)
{
    struct activity_job *job = data;
    for (size_t i = 0; i < job->n_counts; i++) {
        struct activity_count *count = &job->counts[i];
        count->users +=
            bitmap_count_both(day_sets_users(sets, count->a), day_sets_users(sets, count->b), n);
    }
}

static void take_frequency(const struct day_sets *sets, size_t n, void *data)
{
    const struct frequency_job *job = data;
    sliced_histogram(&sets->days, n, job->users);
}

static void read_all(struct activity *a, const struct activity_question *asked,
    void (*take)(const struct day_sets *sets, size_t n, void *data), void *data)
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
        asked->counts[i].users = 0; /* after a lost connection it is asked again */
    }
    if (!day_sets_are_kept(reader->core, &asked->asked, &asked->oldest_day)) {
        return STORAGE_NOT_KEPT;
    }
    activity_begin(&a, reader->core, &reader->session, job->deadline_ms);
    if (is_plain(asked)) {
        (void)count_plain(&a, asked);
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
