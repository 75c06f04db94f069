#include "storage/users/active.h"

#include <stdlib.h>

#include "storage/redis/resp.h"
#include "storage/sketch/bitmap.h"

#define PIECE_MAX     131072 /* bytes of a bitmap at once: a million users */
#define PIECE_MIN     4096   /* with many sets, whose pieces are all in memory */
#define PIECES_BYTES  (16 * 1024 * 1024)
#define AHEAD_BYTES   (2 * 1024 * 1024) /* asked for and not answered */
#define COUNT_PIECE   (1024 * 1024)     /* of BITCOUNT: 0.2 ms */
#define COUNT_AHEAD   (4 * 1024 * 1024)
#define COMMAND_BYTES 2048 /* for so many a command counts, beside those of the bitmap */

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

/* Before the first bitmap of a set. */
static void clear_set(uint64_t *words, size_t n, bool all)
{
    memset(words, all ? 0xff : 0, (n + 7) / 8 * 8);
}

/* The next reply is @n bytes of a bitmap: into those of its set. */
static bool take_bitmap(struct activity *a, uint64_t *words, size_t n, bool all)
{
    const struct reply *reply = pipeline_take(&a->pipe);
    if (reply == NULL) {
        return false;
    }
    if (reply->type != REPLY_TEXT) {
        return pipeline_foreign(&a->pipe, "a bitmap");
    }
    if (all) {
        bitmap_and(words, (n + 7) / 8, reply->text);
    } else {
        bitmap_or(words, (n + 7) / 8, reply->text);
    }
    return true;
}

bool activity_read_set(struct activity *a, const struct activity_who *who,
    const struct activity_days *days, unsigned partition, uint64_t at, size_t n, uint64_t *words)
{
    size_t total = days->n * who->n_actions;
    size_t ahead = AHEAD_BYTES / (n + COMMAND_BYTES) + 1;
    size_t asked = 0;
    clear_set(words, n, who->all);
    for (size_t i = 0; i < total; i++) {
        for (; asked < total && asked < i + ahead; asked++) {
            ask_range(a, who, partition, days->first + (int64_t)(asked / who->n_actions),
                asked % who->n_actions, at, n);
        }
        if (!pipeline_send(&a->pipe, false) || !take_bitmap(a, words, n, who->all)) {
            return false;
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

/* ---- all partitions ---- */

/* One command: about a piece of one bitmap. */
struct place {
    unsigned partition;
    uint64_t at;        /* the piece's first byte */
    size_t set, bitmap; /* which of its bitmaps; where Redis counts: which figure, and 0 */
};

/* What a question asks of all partitions, in this order: partitions, pieces, sets, bitmaps.  It is
 * asked ahead over all of these: most partitions have but a few bytes. */
struct counting {
    struct activity *a;
    struct activity_job *job;
    const uint64_t *users; /* of each partition */
    bool plain;            /* Redis counts */
    size_t piece;          /* bytes */
    uint64_t *words;       /* a piece of each set's bitmap; not if plain */
    struct place asked;    /* the next one to be asked */
    size_t ahead;          /* asked and not answered: bytes, and COMMAND_BYTES for each command */
};

static bool is_end(const struct counting *c, const struct place *place)
{
    return place->partition == c->a->core->partitions.n;
}

/* Bytes of the piece that the place is in. */
static size_t bytes_at(const struct counting *c, const struct place *place)
{
    uint64_t left = (c->users[place->partition] + 7) / 8 - place->at;
    return left < c->piece ? (size_t)left : c->piece;
}

/* The place, or the first one behind it whose partition has users. */
static void skip_empty(const struct counting *c, struct place *place)
{
    while (!is_end(c, place) && c->users[place->partition] == 0) {
        place->partition++;
    }
}

static bool is_last_of_set(const struct counting *c, const struct place *place)
{
    const struct activity_job *job = c->job;
    return c->plain || place->bitmap + 1 == job->sets[place->set].n * job->who.n_actions;
}

static bool is_last_of_piece(const struct counting *c, const struct place *place)
{
    return place->set + 1 == (c->plain ? c->job->n_counts : c->job->n_sets) &&
           is_last_of_set(c, place);
}

static void go_on(const struct counting *c, struct place *place)
{
    if (!is_last_of_set(c, place)) {
        place->bitmap++;
    } else if (!is_last_of_piece(c, place)) {
        place->bitmap = 0;
        place->set++;
    } else {
        place->bitmap = place->set = 0;
        place->at += c->piece;
        if (place->at >= (c->users[place->partition] + 7) / 8) {
            place->at = 0;
            place->partition++;
            skip_empty(c, place);
        }
    }
}

static void ask_count(const struct counting *c, const struct place *place)
{
    const struct activity_job *job = c->job;
    struct key key;
    key_activity(&key, c->a->core->partitions.tag[place->partition], job->who.site,
        job->who.actions[0], job->sets[job->counts[place->set].a].first);
    struct buffer *out = pipeline_command(&c->a->pipe, place->partition, "BITCOUNT", 3);
    resp_word(out, key.p, key.n);
    resp_decimal(out, (int64_t)place->at);
    resp_decimal(out, (int64_t)(place->at + c->piece - 1));
}

static void ask_ahead(struct counting *c)
{
    const struct activity_who *who = &c->job->who;
    size_t most = c->plain ? COUNT_AHEAD : AHEAD_BYTES;
    while (!is_end(c, &c->asked) && c->ahead < most) {
        const struct place *place = &c->asked;
        size_t n = bytes_at(c, place);
        if (c->plain) {
            ask_count(c, place);
        } else {
            ask_range(c->a, who, place->partition,
                c->job->sets[place->set].first + (int64_t)(place->bitmap / who->n_actions),
                place->bitmap % who->n_actions, place->at, n);
        }
        c->ahead += n + COMMAND_BYTES;
        go_on(c, &c->asked);
    }
}

/* All sets of a piece are there: @n bytes of each. */
static void count_sets(struct counting *c, size_t n)
{
    for (size_t i = 0; i < c->job->n_counts; i++) {
        struct activity_count *count = &c->job->counts[i];
        count->users += bitmap_count_both(c->words + count->a * (c->piece / 8),
            c->words + count->b * (c->piece / 8), (n + 7) / 8);
    }
}

/* The answer about a place.  False: see pipe.err. */
static bool take_place(struct counting *c, const struct place *place)
{
    size_t n = bytes_at(c, place);
    c->ahead -= n + COMMAND_BYTES;
    if (c->plain) {
        uint64_t users = 0;
        bool ok = pipeline_number(&c->a->pipe, &users);
        c->job->counts[place->set].users += users;
        return ok;
    }
    uint64_t *words = c->words + place->set * (c->piece / 8);
    if (place->bitmap == 0) {
        clear_set(words, n, c->job->who.all);
    }
    if (!take_bitmap(c->a, words, n, c->job->who.all)) {
        return false;
    }
    if (is_last_of_piece(c, place)) {
        count_sets(c, n);
    }
    return true;
}

static bool count_all(struct activity *a, struct activity_job *job)
{
    uint64_t users[PARTITIONS_MAX];
    struct counting c = {.a = a, .job = job, .users = users, .plain = is_plain(job)};
    struct place place = {0};
    if (job->n_counts == 0 || !activity_sizes(a, job->who.site, users)) {
        return job->n_counts == 0;
    }
    c.piece = c.plain ? COUNT_PIECE : piece_size(job->n_sets);
    c.words = c.plain ? NULL : malloc(job->n_sets * c.piece);
    if (!c.plain && c.words == NULL) {
        return pipeline_fail(&a->pipe, STORAGE_NOMEM);
    }
    skip_empty(&c, &place);
    c.asked = place;
    bool ok = true;
    for (; ok && !is_end(&c, &place); go_on(&c, &place)) {
        ask_ahead(&c);
        ok = pipeline_send(&a->pipe, false) && take_place(&c, &place);
    }
    free(c.words);
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
