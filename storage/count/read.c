#include "storage/count/read.h"

#include "storage/count/pieces.h"
#include "storage/count/recall.h"
#include "storage/count/series.h"
#include "storage/count/whole.h"

/* So many keys of sketches, or fields of sums, may be asked for and not answered: Redis buffers
 * their replies, of sketches 1.6 MB. */
#define AHEAD_SKETCHES 128
#define AHEAD_SUMS     20000
#define PIECES_A_SEND  64 /* Redis answers these pieces while the next ones are written */

/* ---- what is remembered ---- */

static void forget_recalled(struct count_question *q)
{
    count_drop_rest(q);
    q->n_wholes = 0;
    for (size_t i = 0; i < q->n_portions; i++) {
        q->portions[i].runs.n = 0;
    }
    for (size_t i = 0; i < q->tally.n_points; i++) {
        q->known[i] = false;
    }
}

static void begin_parts(struct count_question *q)
{
    const struct portion *visits = count_visits(q);
    if (visits != NULL && q->read.core->cache != NULL) {
        unsigned number = RUN_OF_PARTS + visits->metrics;
        struct cache_id name = portion_run_name(q, visits, METRIC_VISITS, number);
        kept_parts_begin(&q->parts, &q->read, name, SIZE_MAX, SIZE_MAX);
    }
}

/* Take into q->tally what is remembered under the proofs of the plan.  If memory is short, nothing
 * is recalled, and everything is read. */
static void recall_portions(struct count_question *q)
{
    bool series = q->tally.n_points > 1;
    bool every = true; /* may something be recalled of every partition? */
    forget_recalled(q);
    q->found.plan = NULL;
    begin_parts(q);
    for (size_t i = 0; i < q->n_portions; i++) {
        const struct portion *portion = &q->portions[i];
        every = every && proved_may_recall(&q->read, portion->partition);
    }
    bool ok = series ? !every || series_recall(q) : count_recall_point(q, 0);
    if (!ok) {
        forget_recalled(q);
        tally_clear(&q->tally);
    }
}

/* ---- asking ---- */

/* The kinds of keys that hold sums: one key a bucket has all metrics of the kind. */
static const enum key_kind sum_kinds[] = {KEY_PV, KEY_VV};
#define SUM_KINDS (sizeof(sum_kinds) / sizeof(sum_kinds[0]))

static bool is_sum_of(const struct portion *portion, enum metric metric, enum key_kind kind)
{
    return metrics_have(portion->metrics & ~METRICS_SKETCHES, metric) &&
           metric_kind(metric) == kind;
}

/* How many fields of a bucket's key of @kind the portion needs. */
static size_t sum_fields(const struct portion *portion, enum key_kind kind)
{
    size_t n = 0;
    for (enum metric m = 0; m < METRICS; m++) {
        n += is_sum_of(portion, m, kind) ? portion_names(portion, m) : 0;
    }
    return n;
}

/* Ask for all sketches of @metric in the piece, in one command. */
static void ask_sketches(
    struct count_question *q, const struct count_piece *piece, enum metric metric)
{
    const struct portion *portion = piece->portion;
    const char *tag = q->read.core->partitions.tag[portion->partition];
    size_t n_names = portion_names(portion, metric);
    size_t end = piece->first + piece->n;
    if (piece->reads == 0) {
        return;
    }
    proved_command(&q->read, "MGET", piece->reads * n_names, 0);
    for (size_t i = runs_next_unread(&portion->runs, piece->first); i < end;
         i = runs_next_unread(&portion->runs, i + 1)) {
        for (size_t p = 0; p < n_names; p++) {
            struct key key;
            key_bucket(&key, tag, metric_kind(metric), q->job->asked.site,
                portion->cover.buckets[i], metric_name(metric, *portion->pages[p]));
            proved_key(&q->read, &key);
        }
    }
}

/* Ask for the fields of each bucket's key of @kind: a command a bucket, its fields metric by
 * metric.
 */
static void ask_sums(struct count_question *q, const struct count_piece *piece, enum key_kind kind)
{
    const struct portion *portion = piece->portion;
    const char *tag = q->read.core->partitions.tag[portion->partition];
    size_t n_fields = sum_fields(portion, kind);
    size_t end = piece->first + piece->n;
    for (size_t i = runs_next_unread(&portion->runs, piece->first); i < end;
         i = runs_next_unread(&portion->runs, i + 1)) {
        struct bucket bucket = portion->cover.buckets[i];
        struct key key;
        key_bucket(&key, tag, kind, q->job->asked.site, bucket, count_whole_site);
        proved_command(&q->read, bucket.level == LEVEL_MINUTE ? "HMGET" : "ZMSCORE", 1, n_fields);
        proved_key(&q->read, &key);
        for (enum metric metric = 0; metric < METRICS; metric++) {
            size_t n = is_sum_of(portion, metric, kind) ? portion_names(portion, metric) : 0;
            for (size_t p = 0; p < n; p++) {
                proved_word(&q->read, metric_name(metric, *portion->pages[p]));
            }
        }
    }
}

/* Begin a piece, a plain one if it has sums only.  Sketches are compared with each other and with
 * page views, so they must be read at one moment.  Sums need not be: the sums of one bucket are in
 * one reply, and buckets are added up over partitions, which are read one after the other
 * anyway. */
static bool begin_piece(struct count_question *q, const struct count_piece *piece)
{
    const struct portion *portion = piece->portion;
    return (portion->metrics & METRICS_SKETCHES) != 0
               ? proved_piece(
                     &q->read, portion->partition, &portion->cover, &portion->runs, piece->first)
               : proved_plain(&q->read, portion->partition, &portion->cover, &portion->runs,
                     piece->first, piece->n);
}

static bool ask_piece(struct count_question *q, const struct count_piece *piece)
{
    const struct portion *portion = piece->portion;
    if (!begin_piece(q, piece)) {
        return false;
    }
    for (enum metric metric = 0; metric < METRICS; metric++) {
        if (metrics_have(portion->metrics & METRICS_SKETCHES, metric)) {
            ask_sketches(q, piece, metric);
        }
    }
    for (size_t k = 0; k < SUM_KINDS; k++) {
        if (sum_fields(portion, sum_kinds[k]) > 0) {
            ask_sums(q, piece, sum_kinds[k]);
        }
    }
    proved_piece_end(&q->read, piece->n);
    return true;
}

/* How much is asked for and not answered. */
struct ahead {
    size_t sent;           /* pieces that were asked for, answered or not */
    size_t sketches, sums; /* keys and fields that are asked for and not answered */
};

/* Count that piece @at is asked for (@sign 1), or answered (@sign -1). */
static void count_ahead(struct ahead *ahead, const struct count_question *q, size_t at, int sign)
{
    const struct count_piece *piece = &q->pieces[at];
    unsigned metrics = piece->portion->metrics;
    size_t sketches = portion_reads(piece->portion, metrics & METRICS_SKETCHES, piece->reads);
    size_t sums = portion_reads(piece->portion, metrics & ~METRICS_SKETCHES, piece->reads);
    ahead->sketches += sign > 0 ? sketches : -sketches;
    ahead->sums += sign > 0 ? sums : -sums;
}

/* Ask for all pieces that may be under way while the answer to piece @at is awaited. */
static enum storage_err ask_ahead(struct count_question *q, size_t at, struct ahead *ahead)
{
    while (ahead->sent < q->n_pieces &&
           (ahead->sent <= at || (ahead->sketches < AHEAD_SKETCHES && ahead->sums < AHEAD_SUMS))) {
        if (!ask_piece(q, &q->pieces[ahead->sent])) {
            return STORAGE_NOMEM;
        }
        count_ahead(ahead, q, ahead->sent++, 1);
        if (ahead->sent % PIECES_A_SEND == 0 && !proved_send(&q->read)) {
            return STORAGE_NOMEM;
        }
    }
    return proved_send(&q->read) ? STORAGE_OK : STORAGE_NOMEM;
}

/* ---- taking ---- */

/* Take the sketches of a bucket, page by page, into @run, or without a run into the tally. */
static enum storage_err take_sketches(struct count_question *q, struct hll *run, enum metric metric,
    size_t point, const struct reply *strings, size_t n)
{
    bool nomem = false;
    for (size_t i = 0; i < n; i++) {
        struct slice string = strings[i].text;
        if (strings[i].type != REPLY_TEXT) {
            continue;
        }
        bool ok = run != NULL ? hll_merge(run, string.p, string.n)
                              : tally_sketch(&q->tally, metric, point, string.p, string.n, &nomem);
        if (!ok) {
            return nomem ? STORAGE_NOMEM : proved_foreign(&q->read);
        }
    }
    return STORAGE_OK;
}

/* The same for the sums of a bucket. */
static enum storage_err take_sums(struct count_question *q, uint64_t *run, enum metric metric,
    size_t point, const struct reply *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int64_t number = values[i].type == REPLY_NIL ? 0 : reply_integer(&values[i], -1);
        if (number < 0) {
            return proved_foreign(&q->read);
        }
        if (run != NULL) {
            *run += (uint64_t)number;
        } else {
            tally_sum(&q->tally, metric, point, (uint64_t)number);
        }
    }
    return STORAGE_OK;
}

/* Take what was read of bucket @i of the cover, name by name. */
static enum storage_err take_bucket(struct count_question *q, const struct portion *portion,
    enum metric metric, size_t i, size_t point, const struct reply *values)
{
    const struct remembered_run *run = run_at(portion->runs.all, portion->runs.n, i);
    if (run != NULL && i == run->first) {
        hll_clear(&q->run[metric]);
        q->run_sum[metric] = 0;
    }
    size_t n = portion_names(portion, metric);
    uint64_t before = q->run_sum[metric];
    enum storage_err err =
        metric_is_sketch(metric)
            ? take_sketches(q, run != NULL ? &q->run[metric] : NULL, metric, point, values, n)
            : take_sums(q, run != NULL ? &q->run_sum[metric] : NULL, metric, point, values, n);
    if (err == STORAGE_OK && run != NULL && !metric_is_sketch(metric)) {
        whole_add(q, portion, run, i, metric, q->run_sum[metric] - before);
    }
    if (err == STORAGE_OK && run != NULL && i == run->first + run->n - 1 &&
        !count_keep_run(q, metric, portion, run, point)) {
        err = STORAGE_NOMEM;
    }
    return err;
}

/* Take the reply about the sketches of one metric: an array with the sketches of all buckets. */
static enum storage_err take_all_sketches(struct count_question *q, const struct count_piece *piece,
    enum metric metric, const struct reply *strings)
{
    const struct portion *portion = piece->portion;
    size_t n_names = portion_names(portion, metric);
    if (strings->type != REPLY_ARRAY || strings->n != n_names * piece->reads) {
        return proved_foreign(&q->read);
    }
    enum storage_err err = STORAGE_OK;
    size_t end = piece->first + piece->n;
    size_t point = piece->point;
    const struct reply *values = strings->items;
    for (size_t i = runs_next_unread(&portion->runs, piece->first); err == STORAGE_OK && i < end;
         i = runs_next_unread(&portion->runs, i + 1), values += n_names) {
        point = portion_point_of(portion, i, point);
        err = take_bucket(q, portion, metric, i, point, values);
    }
    return err;
}

/* Take the replies about the keys of @kind: an array a bucket, its fields metric by metric. */
static enum storage_err take_all_sums(struct count_question *q, const struct count_piece *piece,
    enum key_kind kind, const struct reply *buckets)
{
    const struct portion *portion = piece->portion;
    size_t n_fields = sum_fields(portion, kind);
    enum storage_err err = STORAGE_OK;
    size_t end = piece->first + piece->n;
    size_t point = piece->point;
    for (size_t i = runs_next_unread(&portion->runs, piece->first); err == STORAGE_OK && i < end;
         i = runs_next_unread(&portion->runs, i + 1), buckets++) {
        if (buckets->type != REPLY_ARRAY || buckets->n != n_fields) {
            return proved_foreign(&q->read);
        }
        point = portion_point_of(portion, i, point);
        const struct reply *values = buckets->items;
        for (enum metric m = 0; err == STORAGE_OK && m < METRICS; m++) {
            if (is_sum_of(portion, m, kind)) {
                err = take_bucket(q, portion, m, i, point, values);
                values += portion_names(portion, m);
            }
        }
    }
    return err;
}

/* Take the replies to a piece's commands, in the order of the commands. */
static enum storage_err take_items(
    struct count_question *q, const struct count_piece *piece, const struct reply *items)
{
    const struct portion *portion = piece->portion;
    enum storage_err err = STORAGE_OK;
    for (enum metric metric = 0; err == STORAGE_OK && metric < METRICS; metric++) {
        if (metrics_have(portion->metrics & METRICS_SKETCHES, metric)) {
            err = take_all_sketches(q, piece, metric, items++);
        }
    }
    for (size_t k = 0; err == STORAGE_OK && k < SUM_KINDS; k++) {
        if (sum_fields(portion, sum_kinds[k]) > 0) {
            err = take_all_sums(q, piece, sum_kinds[k], items);
            items += piece->reads;
        }
    }
    return err;
}

static enum storage_err take_piece(struct count_question *q, const struct count_piece *piece)
{
    const struct reply *items = NULL;
    enum storage_err err = proved_take(&q->read, &items, NULL);
    if (err == STORAGE_OK && items != NULL && piece->reads > 0) {
        err = take_items(q, piece, items);
    }
    if (piece->ends_group) {
        tally_end_group(&q->tally, piece->point);
    }
    return err;
}

enum storage_err count_read(struct count_question *q)
{
    bool full = q->read.full;
    struct ahead ahead = {.sent = 0};
    tally_clear(&q->tally);
    recall_portions(q);
    enum storage_err err = pieces_cut(q) ? STORAGE_OK : STORAGE_NOMEM;
    /* A stale reading goes on, so that the states of all partitions are learnt. */
    for (size_t i = 0; err == STORAGE_OK && q->read.full == full && i < q->n_pieces; i++) {
        err = ask_ahead(q, i, &ahead);
        err = err == STORAGE_OK ? take_piece(q, &q->pieces[i]) : err;
        count_ahead(&ahead, q, i, -1);
    }
    /* End the first and the last point, which may have been recalled without any piece. */
    tally_end_group(&q->tally, 0);
    tally_end_group(&q->tally, q->tally.n_points - 1);
    if (err == STORAGE_OK && !q->read.stale) {
        whole_remember(q);
        series_remember(q);
    }
    kept_parts_keep(&q->parts);
    kept_parts_release(&q->parts);
    return err;
}
