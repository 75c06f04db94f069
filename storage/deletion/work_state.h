/* work_state.h - how far the work at deletions has come.
 *
 * Layer: storage.  Belongs to the rollup's thread.
 */
#ifndef STORAGE_DELETION_WORK_STATE_H
#define STORAGE_DELETION_WORK_STATE_H

#include "storage/deletion/sweep.h"
#include "storage/schema/deletion_record.h"

enum deletion_phase {
    DELETION_NONE,
    DELETION_MARK,
    DELETION_SWEEP,
    DELETION_END,
    DELETION_OVER,
    DELETION_ORPHANS, /* there is no deletion: marks without a record are searched for */
};

/* Zeroed at the beginning. */
struct deletion_work {
    int64_t token; /* the fencing token under which the deletion at hand is done */
    enum deletion_phase phase;
    struct key field; /* of the deletion at hand; target points into it */
    struct deletion_target target;
    struct deletion_record record;
    int64_t stands_us;  /* since when connections stood at the beginning of the step or sweep */
    unsigned partition; /* the next partition to be marked, or searched */
    bool is_ending;     /* that partition is swept before it learns the end: end_partition() */
    unsigned n_sweeps;
    unsigned n_late; /* how often the instant had come before all partitions knew it */
    struct deletion_sweep sweep;
    int64_t look_ms;      /* when to look at the list next; CLOCK_MONOTONIC */
    int64_t search_ms;    /* when to search for orphans next; CLOCK_MONOTONIC */
    unsigned search_from; /* the search begins with this partition; 0: with the first */
    /* A command went without an answer.  It may come late, after the deletion's end, and nothing
     * but a greater token of its partition stops it. */
    bool in_doubt;
};

#endif
