/* users.c - which users are in a set, and on which days one user was active. */
#include "storage/read/operation.h"

#include <stdlib.h>

#include "storage/redis/resp.h"
#include "storage/sketch/bitmap.h"
#include "storage/users/day_sets.h"

#define PIECE      16384 /* bytes of each bitmap at once: 131,072 users */
#define DAYS_AHEAD 512

/* ---- the users of a set ---- */

/* A user whose name is wanted. */
struct found_user {
    unsigned partition;
    uint64_t index;
};

/* A walk over the places of a set's users. */
struct walk {
    struct activity *activity;
    struct active_users_job *job;
    struct day_sets sets;
    uint64_t sizes[PARTITIONS_MAX];
    struct found_user next; /* the first place that was not looked at */
    struct found_user found[ACTIVITY_USERS_MAX + 1];
    size_t n;
};

/* How many names are looked up at once: one more than the page lacks, to see whether there is
 * another page. */
static size_t wanted(const struct walk *w)
{
    return w->job->limit - w->job->n_users + 1;
}

/* The end of the users from found[@from] on whose names are in one list. */
static size_t block_end(const struct walk *w, size_t from)
{
    size_t end = from + 1;
    while (end < w->n && w->found[end].partition == w->found[from].partition &&
           w->found[end].index / KEY_IDS_BLOCK == w->found[from].index / KEY_IDS_BLOCK) {
        end++;
    }
    return end;
}

/* Ask for the names of found[@from, @end), which are in one list. */
static void ask_block(struct walk *w, size_t from, size_t end)
{
    const struct found_user *first = &w->found[from];
    struct key key;
    char digits[21];
    key_user_ids(&key, w->activity->core->partitions.tag[first->partition], w->job->asked.site);
    size_t n_digits = decimal_print((int64_t)(first->index / KEY_IDS_BLOCK), digits);
    struct buffer *out = pipeline_command(&w->activity->pipe, first->partition, "LRANGE", 3);
    memcpy(key.p + key.n, digits, n_digits);
    resp_word(out, key.p, key.n + n_digits);
    resp_decimal(out, (int64_t)(first->index % KEY_IDS_BLOCK));
    resp_decimal(out, (int64_t)(w->found[end - 1].index % KEY_IDS_BLOCK));
}

/* Add one more user to the answer or, if the page is full, note where the next one begins. */
static bool take_name(struct walk *w, const struct found_user *user, const struct reply *name)
{
    struct active_users_job *job = w->job;
    if (name->text.n == 0 || job->more) {
        return true; /* the user was forgotten meanwhile */
    }
    if (job->n_users == job->limit) {
        job->more = true;
        job->next_partition = user->partition;
        job->next_index = user->index;
        return true;
    }
    job->users[job->n_users] = name->text;
    if (!arena_copy(&job->arena, &job->users[job->n_users])) {
        return pipeline_fail(&w->activity->pipe, STORAGE_NOMEM);
    }
    job->n_users++;
    return true;
}

/* Take the names of found[@from, @end), which are in one list. */
static bool take_block(struct walk *w, size_t from, size_t end)
{
    uint64_t first = w->found[from].index;
    const struct reply *reply = pipeline_take(&w->activity->pipe);
    if (reply == NULL) {
        return false;
    }
    if (reply->type != REPLY_ARRAY) {
        return pipeline_foreign(&w->activity->pipe, "a list of users");
    }
    for (size_t i = from; i < end; i++) {
        uint64_t at = w->found[i].index - first;
        if (at < reply->n && !take_name(w, &w->found[i], &reply->items[at])) {
            return false;
        }
    }
    return true;
}

/* Take the names of all users that were found. */
static bool take_names(struct walk *w)
{
    for (size_t i = 0, end; i < w->n; i = end) {
        end = block_end(w, i);
        ask_block(w, i, end);
    }
    bool ok = pipeline_send(&w->activity->pipe, false);
    for (size_t i = 0, end; ok && i < w->n; i = end) {
        end = block_end(w, i);
        ok = take_block(w, i, end);
    }
    w->n = 0;
    return ok;
}

/* Find the users of one piece, from w->next on. */
static void find_users(
    const struct day_sets *sets, const struct day_place *place, size_t n, void *data)
{
    struct walk *w = data;
    const uint64_t *users = day_sets_users(sets, 0);
    bool is_inside = place->partition == w->next.partition && place->at * 8 < w->next.index;
    uint64_t bit = is_inside ? w->next.index - place->at * 8 : 0;
    while (w->n < wanted(w)) {
        bit = bitmap_next(users, n, bit);
        if (bit >= (uint64_t)n * 64) {
            w->next = (struct found_user){place->partition, (place->at + sets->piece) * 8};
            return;
        }
        w->found[w->n++] = (struct found_user){place->partition, place->at * 8 + bit++};
        w->next = (struct found_user){place->partition, place->at * 8 + bit};
    }
}

/* A page's users are mostly in one piece.  Where there are few, the pieces of many partitions are
 * asked for together: twice as many each time, so that about as much is read in vain as was looked
 * at. */
static bool walk_all(struct walk *w)
{
    const struct active_users_job *job = w->job;
    unsigned n = w->activity->core->partitions.n;
    bool ok = activity_sizes(w->activity, job->asked.site, w->sizes);
    size_t most = 1;
    while (ok && !job->more && w->next.partition < n) {
        uint64_t piece = w->sets.piece;
        struct day_place place = {w->next.partition, w->next.index / 8 / piece * piece};
        ok = day_sets_read(&w->sets, w->sizes, &place, most, find_users, w);
        bool is_full = w->n == wanted(w);
        if (!is_full) {
            w->next = (struct found_user){place.partition, place.at * 8};
        }
        most = is_full ? 1 : most * 2;
        ok = ok && take_names(w);
    }
    return ok;
}

enum storage_err active_users_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct active_users_job *users = &job->u.active_users;
    struct activity a;
    if (!day_sets_are_kept(reader->core, &users->asked, &users->oldest_day)) {
        return STORAGE_NOT_KEPT;
    }
    struct walk *w = malloc(sizeof(*w));
    users->n_users = 0; /* the job may run again: a connection was lost, or it came too early */
    users->more = false;
    users->users = arena_alloc(&users->arena, users->limit * sizeof(*users->users));
    if (w == NULL || users->users == NULL) {
        free(w);
        return STORAGE_NOMEM;
    }
    activity_begin(&a, reader->core, &reader->session, job->deadline_ms);
    *w = (struct walk){.activity = &a, .job = users, .next = {users->partition, users->index}};
    if (day_sets_make(&w->sets, &a, &users->asked, PIECE)) {
        (void)walk_all(w);
    }
    day_sets_release(&w->sets);
    free(w);
    return day_sets_answer(&a, job, &users->asked, &users->oldest_day, ret_lost);
}

/* ---- one user's days ---- */

static bool read_days(
    struct activity *a, const struct user_days_job *job, unsigned partition, int64_t index)
{
    size_t asked = 0;
    for (size_t i = 0; i < job->days.n; i++) {
        uint64_t bit = 0;
        for (; asked < job->days.n && asked < i + DAYS_AHEAD; asked++) {
            struct key key;
            struct buffer *out = pipeline_command(&a->pipe, partition, "GETBIT", 2);
            resp_slice(out, key_activity(&key, a->core->partitions.tag[partition], job->site,
                                job->action, job->days.first + (int64_t)asked));
            resp_decimal(out, index);
        }
        if (asked == job->days.n) {
            activity_ask_kept(a, partition, partition + 1);
        }
        if (!pipeline_send(&a->pipe, false) || !pipeline_number(&a->pipe, &bit)) {
            return false;
        }
        job->active[i] = bit != 0;
    }
    return true;
}

/* Read the user's index; -1: the user has none. */
static bool read_index(
    struct activity *a, const struct user_days_job *job, unsigned partition, int64_t *ret)
{
    struct key key;
    struct buffer *out = pipeline_command(&a->pipe, partition, "HGET", 2);
    resp_slice(out, key_user_index(&key, a->core->partitions.tag[partition], job->site));
    resp_slice(out, job->user);
    const struct reply *reply = pipeline_ask(&a->pipe, false);
    *ret = reply != NULL && reply->type == REPLY_TEXT ? reply_integer(reply, -1) : -1;
    return reply != NULL &&
           (*ret >= 0 || reply->type == REPLY_NIL || pipeline_foreign(&a->pipe, "a user's index"));
}

enum storage_err user_days_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct user_days_job *days = &job->u.user_days;
    struct core *core = reader->core;
    unsigned partition = 0;
    int64_t index = -1;
    struct activity a;
    enum storage_err err = activity_partition(core, days->site, days->user, &partition);
    if (err != STORAGE_OK) {
        return err;
    }
    memset(days->active, 0, days->days.n);
    activity_begin(&a, core, &reader->session, job->deadline_ms);
    if (read_index(&a, days, partition, &index) &&
        (index < 0 || read_days(&a, days, partition, index))) {
        (void)activity_were_kept(
            &a, days->site, partition, partition + 1, days->days.first, &days->oldest_day);
    }
    err = pipeline_answer(&a.pipe, job, ret_lost);
    if (err == STORAGE_NOT_KEPT && days->only_kept) {
        int64_t gone = days->oldest_day - days->days.first;
        memset(days->active, 0, gone < (int64_t)days->days.n ? (size_t)gone : days->days.n);
        err = STORAGE_OK;
    }
    return err;
}
