/* active.c - how many users are in sets, and in two of them both; how many came on how many days.
 */
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

/* Where Redis counts: one BITCOUNT. */
struct plain_place {
    unsigned partition;
    size_t count;   /* which figure */
    uint64_t piece; /* of its bitmap */
};

/* All BITCOUNTs of a question: partition by partition, figure by figure, piece by piece.  They are
 * asked ahead over all of these, since most partitions have but a few bytes. */
struct plain_counting {
    struct activity *a;
    struct activity_job *job;
    uint64_t users[PARTITIONS_MAX]; /* of each partition */
    struct plain_place asked;       /* what is asked for next */
    size_t ahead;                   /* the weight of what was asked for and not taken */
};

/* The place, or the first one behind it whose partition has users. */
static void skip_empty(const struct plain_counting *c, struct plain_place *place)
{
    unsigned n = c->a->core->partitions.n;
    while (place->partition < n && c->users[place->partition] == 0) {
        place->partition++;
    }
}

static void go_on(const struct plain_counting *c, struct plain_place *place)
{
    uint64_t bytes = (c->users[place->partition] + 7) / 8;
    place->piece++;
    if (place->piece * COUNT_PIECE < bytes) {
        return;
    }
    place->piece = 0;
    place->count++;
    if (place->count == c->job->n_counts) {
        place->count = 0;
        place->partition++;
        skip_empty(c, place);
    }
}

static void ask_count(const struct plain_counting *c, const struct plain_place *place)
{
    struct key key;
    const struct activity_question *asked = &c->job->asked;
    const struct activity_set *set = &asked->sets[c->job->counts[place->count].a];
    struct buffer *out = pipeline_command(&c->a->pipe, place->partition, "BITCOUNT", 3);
    resp_slice(out, key_activity(&key, c->a->core->partitions.tag[place->partition], asked->site,
                        asked->actions[set->action], set->days.first));
    resp_decimal(out, (int64_t)(place->piece * COUNT_PIECE));
    resp_decimal(out, (int64_t)((place->piece + 1) * COUNT_PIECE - 1));
}

/* What a command that is not answered counts for. */
static size_t weight(const struct plain_counting *c, const struct plain_place *place)
{
    uint64_t left = (c->users[place->partition] + 7) / 8 - place->piece * COUNT_PIECE;
    return ACTIVITY_COMMAND + (left < COUNT_PIECE ? (size_t)left : COUNT_PIECE);
}

/* It waits until half is taken, for each sending is a system call. */
static void ask_ahead(struct plain_counting *c)
{
    unsigned n = c->a->core->partitions.n;
    if (c->ahead > COUNT_AHEAD / 2) {
        return;
    }
    for (; c->asked.partition < n && c->ahead < COUNT_AHEAD; go_on(c, &c->asked)) {
        ask_count(c, &c->asked);
        c->ahead += weight(c, &c->asked);
    }
    if (c->asked.partition == n) {
        activity_ask_kept(c->a, 0, n);
    }
}

/* Redis counts.  False: see pipe.err. */
static bool count_plain(struct activity *a, struct activity_job *job)
{
    struct plain_counting c = {.a = a, .job = job};
    if (job->n_counts == 0 || !activity_sizes(a, job->asked.site, c.users)) {
        return job->n_counts == 0;
    }
    skip_empty(&c, &c.asked);
    for (struct plain_place taken = c.asked; taken.partition < a->core->partitions.n;
         go_on(&c, &taken)) {
        uint64_t users = 0;
        ask_ahead(&c);
        if (!pipeline_send(&a->pipe, false) || !pipeline_number(&a->pipe, &users)) {
            return false;
        }
        c.ahead -= weight(&c, &taken);
        job->counts[taken.count].users += users;
    }
    return true;
}

/* A piece of the sets: count the users. */
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
