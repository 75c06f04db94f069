#include "storage/count/pieces.h"

#include "storage/base/index.h"
#include "storage/schema/part_set.h"

/* Reads in one MULTI.  Redis gathers the replies, and sends them only when the MULTI is over.  16
 * dense sketches (200 KB) are still in the processor's cache then; 256 cost Redis a quarter
 * more. */
#define SKETCHES_AT_ONCE 16
#define READS_AT_ONCE    256 /* sketches and sums together */

size_t portion_point_of(const struct portion *portion, size_t i, size_t point)
{
    while (!portion->rest && portion->ends[point] <= i) {
        point++;
    }
    return point;
}

/* How many buckets of a portion one piece reads. */
static size_t buckets_at_once(const struct portion *portion)
{
    size_t sketches = portion_reads(portion, portion->metrics & METRICS_SKETCHES, 1);
    size_t all = portion_reads(portion, portion->metrics, 1);
    size_t n = all >= READS_AT_ONCE ? 1 : READS_AT_ONCE / all;
    while (n > 1 && n * sketches > SKETCHES_AT_ONCE) {
        n--;
    }
    return n;
}

/* A piece of buckets [first, end): up to @at_once buckets that must be read, and the recalled ones
 * between them.  Bucket @first must be read. */
static struct count_piece cut_piece(
    struct portion *portion, size_t first, size_t end, size_t at_once)
{
    struct count_piece piece = {.portion = portion, .first = first};
    for (size_t i = first; i < end && piece.reads < at_once;
         i = runs_next_unread(&portion->runs, i + 1)) {
        piece.reads++;
        piece.n = i + 1 - first;
    }
    return piece;
}

static bool add_piece(struct count_question *q, struct count_piece piece)
{
    if (!ARRAY_RESERVE(q, pieces)) {
        return false;
    }
    q->pieces[q->n_pieces++] = piece;
    return true;
}

/* Cut a portion's buckets [first, end) into pieces.  Bucket @first belongs to @point.  False: no
 * memory. */
static bool cut_buckets(
    struct count_question *q, struct portion *portion, size_t first, size_t end, size_t point)
{
    size_t at_once = buckets_at_once(portion);
    for (first = runs_next_unread(&portion->runs, first); first < end;
         first = runs_next_unread(&portion->runs, first)) {
        point = portion_point_of(portion, first, point);
        struct count_piece piece = cut_piece(portion, first, end, at_once);
        piece.point = point;
        first += piece.n;
        q->reads +=
            piece.reads * (size_t)__builtin_popcount(portion->metrics & METRICS_OTHER_SKETCHES);
        for (enum metric metric = 0; metric < METRICS; metric++) {
            q->reads += piece.reads * portion_keys(portion, metric);
        }
        if (!add_piece(q, piece)) {
            return false;
        }
    }
    return true;
}

/* The same for the buckets of the group of points that begins with @point. */
static bool cut_group(struct count_question *q, struct portion *portion, size_t point)
{
    size_t last = point + TALLY_GROUP < q->tally.n_points ? point + TALLY_GROUP : q->tally.n_points;
    size_t first = portion_first(portion, point);
    return cut_buckets(q, portion, first, portion->ends[last - 1], point);
}

/* Add an empty piece for each partition of which nothing is read: what is recalled needs proof. */
static bool cut_proofs(struct count_question *q)
{
    struct part_set asked = {{0}};
    for (size_t i = 0; i < q->n_pieces; i++) {
        part_set_add(&asked, q->pieces[i].portion->partition);
    }
    for (size_t i = 0; i < q->n_portions; i++) {
        struct portion *portion = &q->portions[i];
        if (!part_set_has(&asked, portion->partition) &&
            !add_piece(q, (struct count_piece){.portion = portion})) {
            return false;
        }
        part_set_add(&asked, portion->partition);
    }
    return true;
}

bool pieces_cut(struct count_question *q)
{
    q->n_pieces = 0;
    q->reads = 0;
    for (size_t point = 0; point < q->tally.n_points; point += TALLY_GROUP) {
        size_t before = q->n_pieces;
        for (size_t i = 0; i < q->n_portions; i++) {
            if (!cut_group(q, &q->portions[i], point)) {
                return false;
            }
        }
        if (q->n_pieces > before) {
            q->pieces[q->n_pieces - 1].ends_group = true;
        } else if (point == 0) { /* nothing is read: the recalled first point frees its sketch */
            tally_end_group(&q->tally, point);
        }
    }
    for (size_t i = 0; i < q->n_rest; i++) {
        struct portion *rest = &q->rest[i];
        if (!cut_buckets(q, rest, 0, rest->cover.n, TALLY_TOTAL)) {
            return false;
        }
    }
    return cut_proofs(q);
}
