#include "storage/users/day_sets.h"

#include <stdlib.h>

#include "storage/redis/resp.h"
#include "storage/sketch/bitmap.h"

#define PIECE_MIN   4096 /* bytes of a piece if there are many sets, all of them in memory */
#define BLOCK       (SLICED_WORDS * sizeof(uint64_t))
#define WORDS_BYTES (16 * 1024 * 1024)
#define AHEAD_BYTES (2 * 1024 * 1024) /* the most that is asked for and not answered */
#define COUNT_PIECE (1024 * 1024)     /* bytes of one BITCOUNT: 0.2 ms of Redis */

/* A use of the bitmap of a day and an action. */
struct day_use {
    int64_t day;
    size_t action;
    size_t set; /* the set that needs the bitmap; RECENT: day_sets.recent needs it */
};

#define RECENT SIZE_MAX /* sorts behind all sets: they use `recent` as of the day before */

/* ---- the bitmaps that are read ---- */

/* The days that decide who is new on the first day of a set, for all sets that are only_new.  n is
 * 0 if there is no such set. */
static struct activity_days days_before(const struct activity_question *asked, size_t *ret_action)
{
    int64_t first = INT64_MAX;
    int64_t end = 0;
    for (size_t i = 0; i < asked->n_sets; i++) {
        const struct activity_set *set = &asked->sets[i];
        if (set->only_new) {
            first = set->days.first < first ? set->days.first : first;
            end = set->days.first > end ? set->days.first : end;
            *ret_action = set->action;
        }
    }
    first = first < (int64_t)asked->new_days ? 0 : first - (int64_t)asked->new_days;
    return (struct activity_days){.first = first, .n = first < end ? (size_t)(end - first) : 0};
}

/* The first day whose bitmaps are read. */
static int64_t first_day(const struct activity_question *asked)
{
    size_t ignored;
    struct activity_days before = days_before(asked, &ignored);
    int64_t first = before.n > 0 ? before.first : INT64_MAX;
    for (size_t i = 0; i < asked->n_sets; i++) {
        first = asked->sets[i].days.first < first ? asked->sets[i].days.first : first;
    }
    return first;
}

static int use_order(const void *a, const void *b)
{
    const struct day_use *x = a;
    const struct day_use *y = b;
    if (x->day != y->day) {
        return x->day < y->day ? -1 : 1;
    }
    if (x->action != y->action) {
        return x->action < y->action ? -1 : 1;
    }
    return (x->set > y->set) - (x->set < y->set);
}

static void add_uses(struct day_sets *s, struct activity_days days, size_t action, size_t set)
{
    for (size_t i = 0; i < days.n; i++) {
        s->uses[s->n_uses++] = (struct day_use){days.first + (int64_t)i, action, set};
    }
}

static bool make_uses(struct day_sets *s)
{
    const struct activity_question *asked = s->asked;
    size_t action = 0;
    struct activity_days before = days_before(asked, &action);
    size_t n = before.n;
    for (size_t i = 0; i < asked->n_sets; i++) {
        n += asked->sets[i].days.n * asked->sets[i].n_actions;
    }
    s->uses = malloc(n * sizeof(*s->uses));
    if (s->uses == NULL) {
        return false;
    }
    for (size_t i = 0; i < asked->n_sets; i++) {
        const struct activity_set *set = &asked->sets[i];
        for (size_t k = 0; k < set->n_actions; k++) {
            add_uses(s, set->days, set->action + k, i);
        }
    }
    add_uses(s, before, action, RECENT);
    qsort(s->uses, s->n_uses, sizeof(*s->uses), use_order);
    return true;
}

/* The first use of the bitmap behind that of use @i. */
static size_t next_bitmap(const struct day_sets *s, size_t i)
{
    const struct day_use *use = &s->uses[i];
    while (i < s->n_uses && s->uses[i].day == use->day && s->uses[i].action == use->action) {
        i++;
    }
    return i;
}

/* ---- memory ---- */

static bool make_words(struct day_sets *s, size_t piece)
{
    size_t min_days = 0;
    for (size_t i = 0; i < s->asked->n_sets; i++) {
        const struct activity_set *set = &s->asked->sets[i];
        if (set->min_days > 0) {
            min_days = set->min_days > set->days.n ? set->min_days : set->days.n;
        }
    }
    s->days.digits = min_days > 0 ? sliced_digits(min_days) : 0;
    s->recent.digits = s->asked->new_days > 0 ? sliced_digits(s->asked->new_days) : 0;
    size_t n = s->asked->n_sets + 2 + s->days.digits + s->recent.digits; /* 2: row, known */
    size_t most = WORDS_BYTES / n / BLOCK * BLOCK;
    most = most < PIECE_MIN ? PIECE_MIN : most;
    s->piece = piece < most ? piece : most;
    s->words = malloc(n * s->piece);
    s->row = day_sets_users(s, s->asked->n_sets);
    s->known = day_sets_users(s, s->asked->n_sets + 1);
    s->days.words = day_sets_users(s, s->asked->n_sets + 2);
    s->days.stride = s->recent.stride = s->piece / sizeof(*s->words);
    s->recent.words = s->days.words + s->days.digits * s->days.stride;
    return s->words != NULL;
}

bool day_sets_make(
    struct day_sets *s, struct activity *a, const struct activity_question *asked, size_t piece)
{
    *s = (struct day_sets){.activity = a, .asked = asked};
    return (make_uses(s) && make_words(s, piece)) || pipeline_fail(&a->pipe, STORAGE_NOMEM);
}

bool day_sets_make_counted(
    struct day_sets *s, struct activity *a, const struct activity_question *asked)
{
    *s = (struct day_sets){.activity = a, .asked = asked, .piece = COUNT_PIECE};
    s->counts = calloc(asked->n_sets, sizeof(*s->counts));
    return (s->counts != NULL && make_uses(s)) || pipeline_fail(&a->pipe, STORAGE_NOMEM);
}

void day_sets_release(struct day_sets *s)
{
    free(s->uses);
    free(s->words);
    free(s->counts);
    *s = (struct day_sets){0};
}

/* ---- one bitmap ---- */

static void load(uint64_t *words, size_t n, struct slice bytes)
{
    size_t whole = bytes.n < n * sizeof(*words) ? bytes.n : n * sizeof(*words);
    memcpy(words, bytes.p, whole);
    memset((char *)words + whole, 0, n * sizeof(*words) - whole);
}

/* Take the bitmap of one action of a day.  The actions of a day come one after the other, and after
 * the last one the day is counted. */
static void count_day(
    struct day_sets *s, const struct activity_set *set, size_t action, size_t n, struct slice bytes)
{
    if (action == set->action) {
        load(s->row, n, bytes);
    } else if (set->all) {
        bitmap_and(s->row, n, bytes);
    } else {
        bitmap_or(s->row, n, bytes);
    }
    if (action == set->action + set->n_actions - 1) {
        sliced_add(&s->days, n, s->row);
    }
}

static void add_new(struct day_sets *s, size_t i, int64_t day, size_t n, struct slice bytes)
{
    uint64_t *users = day_sets_users(s, i);
    if (day == s->asked->sets[i].days.first) {
        sliced_at_least(&s->recent, n, 1, s->known);
    }
    load(s->row, n, bytes);
    for (size_t k = 0; k < n; k++) {
        users[k] |= s->row[k] & ~s->known[k];
    }
}

static void use_bitmap(struct day_sets *s, const struct day_use *use, size_t n, struct slice bytes)
{
    if (use->set == RECENT) {
        load(s->row, n, bytes);
        sliced_countdown(&s->recent, n, s->row, s->asked->new_days);
        return;
    }
    const struct activity_set *set = &s->asked->sets[use->set];
    if (set->min_days > 0) {
        count_day(s, set, use->action, n, bytes);
    } else if (set->only_new) {
        add_new(s, use->set, use->day, n, bytes);
    } else if (set->all) {
        bitmap_and(day_sets_users(s, use->set), n, bytes);
    } else {
        bitmap_or(day_sets_users(s, use->set), n, bytes);
    }
}

/* ---- pieces ---- */

static void begin_piece(struct day_sets *s, size_t n)
{
    for (size_t i = 0; i < s->asked->n_sets; i++) {
        memset(day_sets_users(s, i), s->asked->sets[i].all ? 0xff : 0, n * sizeof(*s->words));
    }
    for (unsigned j = 0; j < s->days.digits + s->recent.digits; j++) {
        memset(s->days.words + j * s->days.stride, 0, n * sizeof(*s->words));
    }
}

static void end_piece(struct day_sets *s, size_t n)
{
    for (size_t i = 0; i < s->asked->n_sets; i++) {
        const struct activity_set *set = &s->asked->sets[i];
        uint64_t *users = day_sets_users(s, i);
        if (set->min_days > 0) {
            sliced_at_least(&s->days, n, set->min_days, users);
        }
        for (size_t k = 0; set->narrows && k < n; k++) {
            users[k] &= day_sets_users(s, i - 1)[k];
        }
    }
}

static void ask_range(
    struct day_sets *s, const struct day_use *use, unsigned partition, uint64_t at, size_t n)
{
    struct key key;
    const char *command = s->counts != NULL ? "BITCOUNT" : "GETRANGE";
    struct buffer *out = pipeline_command(&s->activity->pipe, partition, command, 3);
    resp_slice(out, key_activity(&key, s->activity->core->partitions.tag[partition], s->asked->site,
                        s->asked->actions[use->action], use->day));
    resp_decimal(out, (int64_t)at);
    resp_decimal(out, (int64_t)(at + n - 1));
}

/* ---- asking ahead ---- */

/* Replies come in the order of partitions, pieces and bitmaps.  Most partitions have but a few
 * bytes, so bitmaps are asked for ahead over all of these. */
struct reading {
    struct day_sets *s;
    const uint64_t *users; /* of each partition */
    struct day_place asked;
    size_t use;   /* the use of the bitmap that is asked for next at that place */
    size_t left;  /* so many pieces are still to be asked for, with the one at `asked` */
    size_t ahead; /* bytes that were asked for and not taken */
    bool is_last; /* the question reads nothing after this */
};

/* Move @place to the first piece at @place or behind it.  False: there is no more piece. */
static bool find_piece(const struct reading *r, struct day_place *place)
{
    unsigned n = r->s->activity->core->partitions.n;
    while (place->partition < n && place->at >= (r->users[place->partition] + 7) / 8) {
        *place = (struct day_place){.partition = place->partition + 1};
    }
    return place->partition < n;
}

static size_t piece_bytes(const struct reading *r, const struct day_place *place)
{
    uint64_t left = (r->users[place->partition] + 7) / 8 - place->at;
    return left < r->s->piece ? (size_t)left : r->s->piece;
}

/* Ask for pieces ahead, once half of the bytes ahead are taken, because each sending is a system
 * call. */
static void ask_ahead(struct reading *r)
{
    struct day_sets *s = r->s;
    if (r->ahead > AHEAD_BYTES / 2) {
        return;
    }
    while (r->ahead < AHEAD_BYTES && r->left > 0 && find_piece(r, &r->asked)) {
        size_t n = piece_bytes(r, &r->asked);
        ask_range(s, &s->uses[r->use], r->asked.partition, r->asked.at, n);
        r->ahead += ACTIVITY_COMMAND + n;
        r->use = next_bitmap(s, r->use);
        if (r->use == s->n_uses) {
            r->use = 0;
            r->asked.at += s->piece;
            r->left--;
        }
    }
    if (r->is_last && !find_piece(r, &r->asked)) {
        activity_ask_kept(s->activity, 0, s->activity->core->partitions.n);
    }
}

static bool read_piece(struct reading *r, size_t n)
{
    struct day_sets *s = r->s;
    struct pipeline *pipe = &s->activity->pipe;
    size_t words = day_sets_words(n);
    if (s->counts == NULL) {
        begin_piece(s, words);
    }
    for (size_t i = 0; i < s->n_uses;) {
        ask_ahead(r);
        const struct reply *reply = pipeline_ask(pipe, false);
        if (reply == NULL) {
            return false;
        }
        if (reply->type != (s->counts != NULL ? REPLY_INTEGER : REPLY_TEXT)) {
            return pipeline_foreign(pipe, "a bitmap");
        }
        for (size_t end = next_bitmap(s, i); i < end; i++) {
            if (s->counts != NULL) {
                s->counts[s->uses[i].set] += (uint64_t)reply->integer;
            } else {
                use_bitmap(s, &s->uses[i], words, reply->text);
            }
        }
        r->ahead -= ACTIVITY_COMMAND + n;
    }
    if (s->counts == NULL) {
        end_piece(s, words);
    }
    return true;
}

static bool read_pieces(
    struct reading *r, struct day_place *place, size_t most, day_sets_take *take, void *data)
{
    r->asked = *place;
    r->left = most;
    for (; most > 0 && find_piece(r, place); most--) {
        size_t n = piece_bytes(r, place);
        if (!read_piece(r, n)) {
            return false;
        }
        if (take != NULL) {
            take(r->s, place, day_sets_words(n), data);
        }
        place->at += r->s->piece;
    }
    return true;
}

bool day_sets_read(struct day_sets *s, const uint64_t users[static PARTITIONS_MAX],
    struct day_place *place, size_t most, day_sets_take *take, void *data)
{
    struct reading r = {.s = s, .users = users};
    return read_pieces(&r, place, most, take, data);
}

void day_sets_read_all(struct day_sets *s, day_sets_take *take, void *data)
{
    uint64_t users[PARTITIONS_MAX];
    struct reading r = {.s = s, .users = users, .is_last = true};
    struct day_place place = {0};
    if (activity_sizes(s->activity, s->asked->site, users)) {
        (void)read_pieces(&r, &place, SIZE_MAX, take, data);
    }
}

/* ---- the whole question ---- */

bool day_sets_are_kept(
    struct core *core, const struct activity_question *asked, int64_t *ret_oldest)
{
    const struct zone *zone = site_zones_get(&core->sites, asked->site);
    *ret_oldest = activity_oldest_day(core, zone, redis_clock_ms(&core->clock) / 1000);
    return first_day(asked) >= *ret_oldest;
}

enum storage_err day_sets_answer(struct activity *a, struct storage_job *job,
    const struct activity_question *asked, int64_t *ret_oldest, bool *ret_lost)
{
    if (a->pipe.err == STORAGE_OK) {
        (void)activity_were_kept(
            a, asked->site, 0, a->core->partitions.n, first_day(asked), ret_oldest);
    }
    return pipeline_answer(&a->pipe, job, ret_lost);
}
