#include "storage/read/judge.h"

#include "storage/read/plan.h"
#include "storage/time/units.h"

static const struct remembered_runs no_runs = {0};

/* A question takes an hour at most, and Redis's clock has not leapt by more than another hour.  So
 * a bucket that is kept until PLAIN_KEPT_S after an attempt began was still kept when it was read.
 */
#define LEAP_S       HOUR_S
#define PLAIN_KEPT_S (HOUR_S + LEAP_S)

/* Is @bucket a minute of an hour that is not closed for readers? */
static bool is_open_minute(
    const struct zone *zone, const struct partition_view *view, struct bucket bucket)
{
    return bucket.level == LEVEL_MINUTE &&
           !closed_for_readers(&view->state, bucket_at(zone, LEVEL_HOUR, bucket.start_s));
}

bool piece_may_be_plain(const struct zone *zone, const struct proved_piece *piece,
    const struct partition_view *view, int64_t now_s, int64_t latest_s)
{
    return view->known && view->ver_held && piece_is_legal(zone, piece, view, now_s, latest_s);
}

bool piece_is_legal(const struct zone *zone, const struct proved_piece *piece,
    const struct partition_view *view, int64_t now_s, int64_t latest_s)
{
    const struct remembered_runs *runs = piece->runs != NULL ? piece->runs : &no_runs;
    bool plain = piece->kind == PIECE_PLAIN;
    struct cover_basis basis =
        plan_basis(zone, view, plain ? now_s + PLAIN_KEPT_S : now_s, latest_s);
    size_t end = piece->first + piece->n;
    for (size_t i = runs_next_unread(runs, piece->first); i < end;
         i = runs_next_unread(runs, i + 1)) {
        struct bucket bucket = piece->cover->buckets[i];
        if (!cover_legal(&basis, bucket) && !(plain && is_open_minute(zone, view, bucket))) {
            return false;
        }
    }
    return true;
}

bool clock_leapt(int64_t planned_s, int64_t now_s)
{
    return now_s - planned_s > LEAP_S;
}

bool piece_proves_recalled(
    struct proved_partition *known, const struct partition_view *view, bool is_plain)
{
    if (!proofs_same(known->unproved, &known->view, view)) {
        return false;
    }
    for (unsigned proof = PROOF_VER; (known->seen || is_plain) && proof <= PROOF_FOLD; proof++) {
        known->changed |= proofs_same(1u << proof, &known->view, view) ? 0 : 1u << proof;
    }
    known->view = *view;
    known->seen = true;
    known->unproved = 0;
    return true;
}
