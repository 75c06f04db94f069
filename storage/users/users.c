/* users.c - which users were active in a set of days, and on which days one user was. */
#include "storage/read/operation.h"

#include <stdlib.h>

#include "storage/redis/resp.h"
#include "storage/sketch/bitmap.h"
#include "storage/users/day_sets.h"

#define PIECE      16384 /* bytes of each bitmap at once: 131,072 users */
#define DAYS_AHEAD 512

/* ---- the users of a set ---- */

/* A walk over the places of a set's users. */
struct walk {
    struct activity *activity;
    struct active_users_job *job;
    struct day_sets sets;
    uint64_t
        found[ACTIVITY_USERS_MAX + 1]; /* indices in job->next_partition whose names are wanted */
    size_t n;
};

/* Ask for the names of found[from, ..)'s block; returns how many of them are in it. */
static size_t ask_block(struct walk *w, size_t from)
{
    const char *tag = w->activity->core->partitions.tag[w->job->next_partition];
    uint64_t block = w->found[from] / KEY_IDS_BLOCK;
    size_t n = 1;
    struct key key;
    char digits[21];
    key_user_ids(&key, tag, w->job->asked.site);
    size_t n_digits = decimal_print((int64_t)block, digits);
    while (from + n < w->n && w->found[from + n] / KEY_IDS_BLOCK == block) {
        n++;
    }
    struct buffer *out = pipeline_command(&w->activity->pipe, w->job->next_partition, "LRANGE", 3);
    memcpy(key.p + key.n, digits, n_digits);
    resp_word(out, key.p, key.n + n_digits);
    resp_decimal(out, (int64_t)(w->found[from] % KEY_IDS_BLOCK));
    resp_decimal(out, (int64_t)(w->found[from + n - 1] % KEY_IDS_BLOCK));
    return n;
}

/* One more user of the answer, or, if it is full, the place of the next page. */
static bool take_name(struct walk *w, uint64_t index, const struct reply *name)
{
    struct active_users_job *job = w->job;
    if (name->text.n == 0 || job->more) {
        return true; /* forgotten meanwhile */
    }
    if (job->n_users == job->limit) {
        job->more = true;
        job->next_index = index;
        return true;
    }
    char *copy = arena_alloc(&job->arena, name->text.n);
    if (copy == NULL) {
        return pipeline_fail(&w->activity->pipe, STORAGE_NOMEM);
    }
    memcpy(copy, name->text.p, name->text.n);
    job->users[job->n_users++] = (struct slice){copy, name->text.n};
    return true;
}

/* Names of one block, from found[*at] on; *at is moved behind them. */
static bool take_block(struct walk *w, size_t *at)
{
    uint64_t first = w->found[*at];
    const struct reply *reply = pipeline_take(&w->activity->pipe);
    if (reply == NULL) {
        return false;
    }
    if (reply->type != REPLY_ARRAY) {
        return pipeline_foreign(&w->activity->pipe, "a list of users");
    }
    while (*at < w->n && w->found[*at] / KEY_IDS_BLOCK == first / KEY_IDS_BLOCK) {
        uint64_t index = w->found[(*at)++];
        if (index - first < reply->n && !take_name(w, index, &reply->items[index - first])) {
            return false;
        }
    }
    return true;
}

/* The names of what was found. */
static bool take_names(struct walk *w)
{
    size_t n_blocks = 0;
    size_t at = 0;
    for (size_t i = 0; i < w->n; n_blocks++) {
        i += ask_block(w, i);
    }
    bool ok = pipeline_send(&w->activity->pipe, false);
    for (; ok && n_blocks > 0; n_blocks--) {
        ok = take_block(w, &at);
    }
    w->n = 0;
    return ok;
}

/* Users of one piece of the partition at hand, from job->next_index on. */
static bool walk_piece(struct walk *w, uint64_t at, size_t n)
{
    struct active_users_job *job = w->job;
    bool ok = day_sets_read(&w->sets, job->next_partition, at, n);
    size_t n_words = day_sets_words(n);
    uint64_t bit = job->next_index > at * 8 ? job->next_index - at * 8 : 0;
    while (ok && !job->more) {
        bit = bitmap_next(day_sets_users(&w->sets, 0), n_words, bit);
        bool end = bit >= (uint64_t)n_words * 64;
        if (!end) {
            w->found[w->n++] = at * 8 + bit++;
        }
        if (end || job->n_users + w->n > job->limit) {
            ok = take_names(w);
        }
        if (end) {
            break;
        }
    }
    return ok;
}

static bool walk_all(struct walk *w)
{
    struct active_users_job *job = w->job;
    uint64_t sizes[PARTITIONS_MAX];
    bool ok = activity_sizes(w->activity, job->asked.site, sizes);
    while (ok && job->next_partition < w->activity->core->partitions.n) {
        uint64_t bytes = (sizes[job->next_partition] + 7) / 8;
        size_t piece = w->sets.piece;
        for (uint64_t at = job->next_index / 8 / piece * piece; ok && !job->more && at < bytes;
             at += piece) {
            ok = walk_piece(w, at, bytes - at < piece ? (size_t)(bytes - at) : piece);
        }
        if (job->more) {
            return ok;
        }
        job->next_partition++;
        job->next_index = 0;
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
    users->n_users = 0; /* it may have been asked before: by a lost connection, or too early */
    users->more = false;
    users->next_partition = users->partition;
    users->next_index = users->index;
    users->users = arena_alloc(&users->arena, users->limit * sizeof(*users->users));
    if (w == NULL || users->users == NULL) {
        free(w);
        return STORAGE_NOMEM;
    }
    activity_begin(&a, reader->core, &reader->session, job->deadline_ms);
    *w = (struct walk){.activity = &a, .job = users};
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
            key_activity(&key, a->core->partitions.tag[partition], job->site, job->action,
                job->days.first + (int64_t)asked);
            struct buffer *out = pipeline_command(&a->pipe, partition, "GETBIT", 2);
            resp_word(out, key.p, key.n);
            resp_decimal(out, index);
        }
        if (!pipeline_send(&a->pipe, false) || !pipeline_number(&a->pipe, &bit)) {
            return false;
        }
        job->active[i] = bit != 0;
    }
    return true;
}

/* The user's index; -1 where there is none. */
static bool read_index(
    struct activity *a, const struct user_days_job *job, unsigned partition, int64_t *ret)
{
    struct key key;
    key_user_index(&key, a->core->partitions.tag[partition], job->site);
    struct buffer *out = pipeline_command(&a->pipe, partition, "HGET", 2);
    resp_word(out, key.p, key.n);
    resp_word(out, job->user.p, job->user.n);
    const struct reply *reply = pipeline_ask(&a->pipe, false);
    *ret = reply == NULL ? -1 : reply_integer(reply, -1);
    return reply != NULL;
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
