/* judge.h - may the buckets of a piece be used, by the state and time that came with them?
 *
 * Layer: storage, private to proved_read.c, and pure.  Thread-safe: no state.
 */
#ifndef STORAGE_READ_JUDGE_H
#define STORAGE_READ_JUDGE_H

#include "storage/read/proved_read.h"

/* May @piece, a plain one, be read as such (see proved_plain())?  @view is what was last seen of
 * its partition; @now_s is Redis's clock when the attempt began; @latest_s as in read/plan.h. */
bool piece_may_be_plain(const struct zone *zone, const struct proved_piece *piece,
    const struct partition_view *view, int64_t now_s, int64_t latest_s);

/* May all buckets of @piece be used, by @view, but for the recalled ones, which have their proofs?
 * @view came with the piece, and @now_s is Redis's clock at that moment.  For a plain piece, which
 * is judged before it is read, @view was last seen, and @now_s is the clock when the attempt began.
 * @latest_s as in read/plan.h. */
bool piece_is_legal(const struct zone *zone, const struct proved_piece *piece,
    const struct partition_view *view, int64_t now_s, int64_t latest_s);

/* Has Redis's clock leapt ahead between the attempt's plan (@planned_s) and a reply (@now_s), so
 * that plain pieces prove nothing? */
bool clock_leapt(int64_t planned_s, int64_t now_s);

/* Does what was recalled of the partition @known hold, by @view, which came with a piece?  If so,
 * @known has @view from now on, and notes which proofs have changed since an earlier reply, or for
 * a plain piece since the plan. */
bool piece_proves_recalled(
    struct proved_partition *known, const struct partition_view *view, bool is_plain);

#endif
