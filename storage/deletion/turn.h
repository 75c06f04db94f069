/* turn.h - a turn of work at deletions.
 *
 * Layer: storage, private to work.c (the steps of a deletion), marks.c (what partitions are told)
 * and orphans.c (marks without a deletion).  Belongs to the rollup's thread.
 */
#ifndef STORAGE_DELETION_TURN_H
#define STORAGE_DELETION_TURN_H

#include "storage/deletion/work_state.h"
#include "storage/session/dispatcher.h"

struct turn {
    struct deletion_work *work;
    struct core *core;
    struct pipeline pipe;
    int64_t until_ms; /* CLOCK_MONOTONIC */
    bool is_reading;  /* the command at hand changes nothing, so its loss leaves no doubt */
};

/* Was a connection lost since the phase began?  Then a server may have gone back behind what it was
 * told. */
static inline bool has_reconnected(const struct turn *turn)
{
    return turn->work->stands_us != session_stands_since(turn->pipe.session);
}

/* Give up the phase: the next turn begins again with the record or, without one, with the list. */
static inline void begin_again(struct deletion_work *work)
{
    work->phase = DELETION_NONE;
    work->look_ms = 0;
}

/* Read `deleting`, `deleted` and `cfg` of a partition's state.  The reply is valid until the next
 * command.  NULL: see the pipeline's err. */
const struct reply *read_marks(struct turn *turn, unsigned partition) MUST_CHECK;

/* Tell a partition of the deletion at hand: of the target nothing is counted that arrives before
 * the record's instant (0: nothing at all).  In DELETION_MARK the partition also learns that keys
 * are taken away from now on; in any other phase, that no more are.  False: another process leads,
 * or see the pipeline's err. */
bool mark_partition(struct turn *turn, unsigned partition) MUST_CHECK;

/* Do a step: sweep the partition at hand; when that is over, mark it, and *ret_done becomes true.
 * For a partition that has gone back into a deletion: keys that were taken away may be back, and a
 * part of an index may be gone.  While the partition has the mark it counts nothing, so what it has
 * of the site is from before.  False: as above. */
bool end_partition(struct turn *turn, bool *ret_done) MUST_CHECK;

/* Do a step: ask the partition at hand whether it still knows the end of the deletion, and go on to
 * the next one.  A server may have gone back behind the end while the record's server has not: its
 * partitions would count nothing of the site any more.  Such a partition is swept, and told again.
 * False: as above. */
bool check_end(struct turn *turn) MUST_CHECK;

/* Search the next partition for the mark of a deletion that has no record, and end it.  After the
 * last partition the phase is DELETION_NONE.  False: as above.
 *
 * Servers of a cluster go back one by one.  The record may be lost, and a mark stay; or a deletion
 * may be over, and a partition go back behind its end.  Such a partition would count nothing of the
 * site for ever.  So the leader searches all partitions every few seconds while there is no
 * deletion.  The leader ends the marks that it finds, and begins no deletion again: what was
 * counted since the end must stay.  A deletion whose record is lost is lost like an event that the
 * same server acknowledged just then. */
bool end_orphan(struct turn *turn) MUST_CHECK;

/* While there is no deletion: begin such a search if it is time for one.  Does nothing where one
 * server has all partitions: there record and marks go back together. */
void begin_orphans(struct turn *turn);

/* Decide how the search goes on after a step has failed with @err: behind the partition, and later
 * if its server hangs.  If the step was one of a deletion, a search becomes due, because the record
 * may be lost. */
void orphans_after_fault(struct deletion_work *work, enum storage_err err);

#endif
