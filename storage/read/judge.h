/* judge.h - may the buckets of a piece be used, by the state and time that came with them?
 *
 * Layer: storage, private to proved_read.c, and pure.  Thread-safe: no state.
 */
#ifndef STORAGE_READ_JUDGE_H
#define STORAGE_READ_JUDGE_H

#include "storage/read/proved_read.h"

/* May @piece be a plain one, by what was last seen of its partition (see proved_plain()), at @now_s
 * by Redis's clock? */
bool piece_may_be_plain(const struct zone *zone, const struct proved_piece *piece,
    const struct partition_view *view, int64_t now_s, int64_t latest_s);

/* By @view, which came with @piece: may all of its buckets be used that were read?  Those that are
 * recalled may if their proofs hold.  @now_s is Redis's clock: at the piece's moment, or where the
 * piece is to be a plain one when the attempt began; @latest_s as in read/plan.h. */
bool piece_is_legal(const struct zone *zone, const struct proved_piece *piece,
    const struct partition_view *view, int64_t now_s, int64_t latest_s);

/* Has Redis's clock leapt since the attempt was planned, so that plain pieces prove nothing? */
bool clock_leapt(int64_t planned_s, int64_t now_s);

/* By @view, which came with a piece, plain or not: does what was recalled of the partition hold?
 * From now on the partition is known by @view. */
bool piece_proves_recalled(
    struct proved_partition *known, const struct partition_view *view, bool is_plain);

#endif
