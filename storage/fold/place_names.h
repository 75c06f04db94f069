/* place_names.h - what each task counts a row for, where names without a place are put together.
 *
 * Layer: storage, pure.  Belongs to the fold's thread.
 *
 * This is between the tasks of a share and the places of an hour (places.h).  A task counts:
 *
 *     TASK_PAGE    the page or the named event
 *     TASK_SITE    the site, the values of dimensions, the sections
 *     TASK_VISIT   of a visit that begins: the site, the page, the sections
 *
 * A batch has few values of dimensions, and each of its events has several.  So it is remembered of
 * each value what was found for its last site and hour.
 */
#ifndef STORAGE_FOLD_PLACE_NAMES_H
#define STORAGE_FOLD_PLACE_NAMES_H

#include "storage/fold/batch.h"
#include "storage/fold/merge_counts.h"
#include "storage/fold/places.h"

#define PLACE_NAMES_MAX (2 + EVENT_VALUES_MAX) /* names of one task */

/* The name under which what has no place is counted. */
struct other_name {
    struct slice class, name; /* in the arena; the class is a part of the name */
    uint64_t hash;
};

/* Zeroed it is empty. */
struct place_names {
    struct places *places; /* owned */
    const struct batch *batch;
    struct value_place *values; /* owned: one for each value of the batch */
    size_t values_capacity;
    struct other_name *others; /* owned: a few */
    size_t n_others, others_capacity;
    struct arena arena;
    size_t n_capped; /* counts that were put together since place_names_decide() */
};

/* False: out of memory; release it in either case. */
bool place_names_init(struct place_names *names, const struct core *core) MUST_CHECK;
void place_names_release(struct place_names *names);

/* Forget all.  The next tasks are of @partition and @batch.  False: out of memory. */
bool place_names_begin(struct place_names *names, const struct batch *batch, unsigned partition,
    const struct known_places *known) MUST_CHECK;

/* The names of the task will come.  False: out of memory. */
bool place_names_ask(
    struct place_names *names, const struct row *row, enum task_kind kind) MUST_CHECK;

/* Redis has answered: decide from the beginning. */
void place_names_decide(struct place_names *names);

/* What the task counts the row for, which was asked for: names[0 .. result).  They live until
 * place_names_begin().  In the order of tasks. */
size_t place_names_of(struct place_names *names, const struct row *row, enum task_kind kind,
    struct merge_name ret[PLACE_NAMES_MAX]);

#endif
