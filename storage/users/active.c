#include "storage/users/active.h"

#include <stdlib.h>

#include "storage/redis/resp.h"
#include "storage/sketch/bitmap.h"

#define PIECE_MAX    131072 /* bytes of a bitmap at once: a million users */
#define PIECE_MIN    4096   /* with many sets, whose pieces are all in memory */
#define PIECES_BYTES (16 * 1024 * 1024)
#define AHEAD_BYTES  (2 * 1024 * 1024) /* asked for and not answered */
#define COUNT_PIECE  (1024 * 1024)     /* of BITCOUNT: 0.2 ms */
#define COUNT_AHEAD  (4 * 1024 * 1024)

static void ask_range(struct activity *a, const struct activity_who *who, unsigned partition,
    int64_t day, size_t action, uint64_t at, size_t n)
{
    struct key key;
    key_activity(&key, a->core->partitions.tag[partition], who->site, who->actions[action], day);
    struct buffer *out = pipeline_command(&a->pipe, partition, "GETRANGE", 3);
    resp_word(out, key.p, key.n);
    resp_decimal(out, (int64_t)at);
    resp_decimal(out, (int64_t)(at + n - 1));
}

bool activity_read_set(struct activity *a, const struct activity_who *who,
    const struct activity_days *days, unsigned partition, uint64_t at, size_t n, uint64_t *words)
{
    size_t total = days->n * who->n_actions;
    size_t ahead = AHEAD_BYTES / n + 1;
    size_t asked = 0;
    memset(words, who->all ? 0xff : 0, (n + 7) / 8 * 8);
    for (size_t i = 0; i < total; i++) {
        for (; asked < total && asked < i + ahead; asked++) {
            ask_range(a, who, partition, days->first + (int64_t)(asked / who->n_actions),
                asked % who->n_actions, at, n);
        }
        const struct reply *reply = pipeline_ask(&a->pipe, false);
        if (reply == NULL) {
            return false;
        }
        if (reply->type != REPLY_TEXT) {
            return pipeline_foreign(&a->pipe, "a bitmap");
        }
        if (who->all) {
            bitmap_and(words, (n + 7) / 8, reply->text);
        } else {
            bitmap_or(words, (n + 7) / 8, reply->text);
        }
    }
    return true;
}

/* Bytes of each set's bitmap that are in memory at once: whole words. */
static size_t piece_size(size_t n_sets)
{
    size_t size = PIECES_BYTES / n_sets / 64 * 64;
    return size > PIECE_MAX ? PIECE_MAX : size < PIECE_MIN ? PIECE_MIN : size;
}

/* All sets of one partition, piece by piece. */
static bool count_partition(struct activity *a, struct activity_job *job, unsigned partition,
    uint64_t users, uint64_t *words)
{
    size_t piece = piece_size(job->n_sets);
    uint64_t bytes = (users + 7) / 8;
    for (uint64_t at = 0; at < bytes; at += piece) {
        size_t n = bytes - at < piece ? (size_t)(bytes - at) : piece;
        size_t n_words = (n + 7) / 8;
        for (size_t s = 0; s < job->n_sets; s++) {
            if (!activity_read_set(
                    a, &job->who, &job->sets[s], partition, at, n, words + s * (piece / 8))) {
                return false;
            }
        }
        for (size_t i = 0; i < job->n_counts; i++) {
            struct activity_count *count = &job->counts[i];
            count->users += bitmap_count_both(
                words + count->a * (piece / 8), words + count->b * (piece / 8), n_words);
        }
    }
    return true;
}

/* Is each figure that of one bitmap? */
static bool is_plain(const struct activity_job *job)
{
    bool plain = job->who.n_actions == 1;
    for (size_t s = 0; plain && s < job->n_sets; s++) {
        plain = job->sets[s].n == 1;
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
    key_activity(&key, a->core->partitions.tag[partition], job->who.site, job->who.actions[0],
        job->sets[job->counts[number].a].first);
    struct buffer *out = pipeline_command(&a->pipe, partition, "BITCOUNT", 3);
    resp_word(out, key.p, key.n);
    resp_decimal(out, (int64_t)(piece * COUNT_PIECE));
    resp_decimal(out, (int64_t)((piece + 1) * COUNT_PIECE - 1));
}

/* The same where each figure is that of one bitmap: Redis counts. */
static bool count_plain(
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

static bool count_all(struct activity *a, struct activity_job *job)
{
    const struct partitions *partitions = &a->core->partitions;
    uint64_t users[PARTITIONS_MAX];
    uint64_t *words = NULL;
    bool plain = is_plain(job);
    if (!activity_sizes(a, job->who.site, users)) {
        return false;
    }
    if (!plain) {
        words = malloc(job->n_sets * piece_size(job->n_sets));
        if (words == NULL) {
            return pipeline_fail(&a->pipe, STORAGE_NOMEM);
        }
    }
    bool ok = true;
    for (unsigned p = 0; ok && p < partitions->n; p++) {
        if (users[p] > 0) {
            ok = plain ? count_plain(a, job, p, users[p])
                       : count_partition(a, job, p, users[p], words);
        }
    }
    free(words);
    return ok;
}

enum storage_err activity_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct activity_job *asked = &job->u.activity;
    struct core *core = reader->core;
    int64_t first = asked->sets[0].first;
    struct activity a;
    for (size_t i = 0; i < asked->n_counts; i++) {
        asked->counts[i].users = 0; /* after a lost connection it is asked again */
    }
    asked->oldest_day = activity_oldest_day(
        core, site_zones_get(&core->sites, asked->who.site), redis_clock_ms(&core->clock) / 1000);
    if (first < asked->oldest_day) {
        return STORAGE_NOT_KEPT;
    }
    activity_begin(&a, core, &reader->session, job->deadline_ms);
    if (count_all(&a, asked)) {
        (void)activity_were_kept(
            &a, asked->who.site, 0, core->partitions.n, first, &asked->oldest_day);
    }
    return pipeline_answer(&a.pipe, job, ret_lost);
}
