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

static void ask_range(struct talk *talk, const struct activity_who *who, unsigned partition,
    int64_t day, size_t action, uint64_t at, size_t n)
{
    struct key key;
    key_activity(
        &key, talk->reader->core->partitions.tag[partition], who->site, who->actions[action], day);
    resp_head(&talk->out, 4);
    resp_text(&talk->out, "GETRANGE");
    resp_word(&talk->out, key.p, key.n);
    resp_decimal(&talk->out, (int64_t)at);
    resp_decimal(&talk->out, (int64_t)(at + n - 1));
}

enum storage_err activity_read_set(struct talk *talk, const struct activity_who *who,
    const struct activity_days *days, unsigned partition, uint64_t at, size_t n, uint64_t *words)
{
    size_t total = days->n * who->n_actions;
    size_t ahead = AHEAD_BYTES / n + 1;
    size_t asked = 0;
    memset(words, who->all ? 0xff : 0, (n + 7) / 8 * 8);
    for (size_t i = 0; i < total; i++) {
        const struct reply *reply = NULL;
        for (; asked < total && asked < i + ahead; asked++) {
            ask_range(talk, who, partition, days->first + (int64_t)(asked / who->n_actions),
                asked % who->n_actions, at, n);
        }
        enum storage_err err = talk_send(talk) ? talk_next(talk, &reply) : STORAGE_NOMEM;
        if (err != STORAGE_OK) {
            return err;
        }
        if (reply->type != REPLY_TEXT) {
            return talk_foreign(talk);
        }
        if (who->all) {
            bitmap_and(words, (n + 7) / 8, reply->text);
        } else {
            bitmap_or(words, (n + 7) / 8, reply->text);
        }
    }
    return STORAGE_OK;
}

/* Bytes of each set's bitmap that are in memory at once: whole words. */
static size_t piece_size(size_t n_sets)
{
    size_t size = PIECES_BYTES / n_sets / 64 * 64;
    return size > PIECE_MAX ? PIECE_MAX : size < PIECE_MIN ? PIECE_MIN : size;
}

/* All sets of one partition, piece by piece. */
static enum storage_err count_partition(struct talk *talk, struct activity_job *job,
    unsigned partition, uint64_t users, uint64_t *words)
{
    size_t piece = piece_size(job->n_sets);
    uint64_t bytes = (users + 7) / 8;
    for (uint64_t at = 0; at < bytes; at += piece) {
        size_t n = bytes - at < piece ? (size_t)(bytes - at) : piece;
        size_t n_words = (n + 7) / 8;
        for (size_t s = 0; s < job->n_sets; s++) {
            enum storage_err err = activity_read_set(
                talk, &job->who, &job->sets[s], partition, at, n, words + s * (piece / 8));
            if (err != STORAGE_OK) {
                return err;
            }
        }
        for (size_t i = 0; i < job->n_counts; i++) {
            struct activity_count *count = &job->counts[i];
            count->users += bitmap_count_both(
                words + count->a * (piece / 8), words + count->b * (piece / 8), n_words);
        }
    }
    return STORAGE_OK;
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

static void ask_count(struct talk *talk, const struct activity_job *job, unsigned partition,
    size_t number, uint64_t piece)
{
    struct key key;
    key_activity(&key, talk->reader->core->partitions.tag[partition], job->who.site,
        job->who.actions[0], job->sets[job->counts[number].a].first);
    resp_head(&talk->out, 4);
    resp_text(&talk->out, "BITCOUNT");
    resp_word(&talk->out, key.p, key.n);
    resp_decimal(&talk->out, (int64_t)(piece * COUNT_PIECE));
    resp_decimal(&talk->out, (int64_t)((piece + 1) * COUNT_PIECE - 1));
}

/* The same by Redis. */
static enum storage_err count_plain(
    struct talk *talk, struct activity_job *job, unsigned partition, uint64_t users)
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
            ask_count(talk, job, partition, (size_t)(asked / pieces), asked % pieces);
        }
        enum storage_err err = talk_send(talk) ? talk_number(talk, &users_here) : STORAGE_NOMEM;
        if (err != STORAGE_OK) {
            return err;
        }
        job->counts[i / pieces].users += users_here;
    }
    return STORAGE_OK;
}

static enum storage_err count_all(struct talk *talk, struct activity_job *job)
{
    const struct partitions *partitions = &talk->reader->core->partitions;
    uint64_t users[PARTITIONS_MAX];
    uint64_t *words = NULL;
    bool plain = is_plain(job);
    enum storage_err err = activity_sizes(talk, job->who.site, users);
    if (err == STORAGE_OK && !plain) {
        words = malloc(job->n_sets * piece_size(job->n_sets));
        err = words == NULL ? STORAGE_NOMEM : STORAGE_OK;
    }
    for (unsigned p = 0; err == STORAGE_OK && p < partitions->n; p++) {
        if (users[p] > 0) {
            err = plain ? count_plain(talk, job, p, users[p])
                        : count_partition(talk, job, p, users[p], words);
        }
    }
    free(words);
    return err;
}

enum storage_err activity_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct activity_job *activity = &job->u.activity;
    struct core *core = reader->core;
    int64_t first = activity->sets[0].first;
    struct talk talk;
    for (size_t i = 0; i < activity->n_counts; i++) {
        activity->counts[i].users = 0; /* after a lost connection it is asked again */
    }
    activity->oldest_day = activity_oldest_day(core,
        site_zones_get(&core->sites, activity->who.site), redis_clock_ms(&core->clock) / 1000);
    if (first < activity->oldest_day) {
        return STORAGE_NOT_KEPT;
    }
    talk_begin(&talk, reader, job, ret_lost);
    enum storage_err err = count_all(&talk, activity);
    if (err == STORAGE_OK) {
        err = activity_were_kept(
            &talk, activity->who.site, 0, core->partitions.n, first, &activity->oldest_day);
    }
    talk_end(&talk);
    return err;
}
