/* names.h - what a row is counted for, where names without a place are put together.
 *
 * Layer: storage, pure.  Belongs to the thread of a lane (fold/lanes.h).
 *
 * These functions stand between the tasks of a fold and the places of an hour (places.h).  What a
 * row is counted for depends on the task, which lies in a partition of its own:
 *
 *     the page    counts for the page or the named event
 *     the site    counts for the site, the values of dimensions, the sections
 *     a visit     counts, if it begins, for the site, the page, the sections
 *
 * A batch has few values of dimensions, and each of its events has several.  So what was found for
 * the last site and hour of each value is remembered.
 */
#ifndef STORAGE_PLACES_NAMES_H
#define STORAGE_PLACES_NAMES_H

#include "storage/base/arena.h"
#include "storage/places/counted_for.h"
#include "storage/places/places.h"

#define PLACE_NAMES_MAX (2 + EVENT_VALUES_MAX) /* names that a row is counted for in a task */

/* The name under which names of a class without a place are counted together. */
struct other_name {
    struct slice class, name; /* in the arena; the class is a part of the name */
    uint64_t hash;
};

/* Zeroed it is empty. */
struct place_names {
    struct places *places; /* owned */
    const struct counted_value *values;
    size_t n_values;
    struct value_place *found; /* owned: one for each value */
    size_t found_capacity;
    struct other_name *others; /* owned array, of a few */
    size_t n_others, others_capacity;
    struct arena arena;
    size_t n_capped; /* counts that were put together since place_names_decide() */
};

/* Make @names empty; @core outlives it.  False: out of memory; the caller releases @names all the
 * same. */
bool place_names_init(struct place_names *names, const struct core *core) MUST_CHECK;
void place_names_release(struct place_names *names);

/* Forget all.  The next rows are counted in @partition; the numbers of their values are those of
 * @values.  @known and @view are as for places_begin().  False: out of memory. */
bool place_names_begin(struct place_names *names, const struct counted_value *values,
    size_t n_values, unsigned partition, const struct known_hashes *known,
    const struct places_view *view) MUST_CHECK;

/* Note that the names of @row will come, for the task of the page, of the site or of the visit.
 * False: out of memory. */
bool place_names_ask_page(struct place_names *names, const struct row *row) MUST_CHECK;
bool place_names_ask_site(struct place_names *names, const struct row *row) MUST_CHECK;
bool place_names_ask_visit(struct place_names *names, const struct row *row) MUST_CHECK;

/* Redis has answered: forget what was decided before. */
void place_names_decide(struct place_names *names);

/* The names that @row, which was asked for, is counted for: ret[0 .. result).  They live until the
 * next place_names_begin().  Rows come in the order of the batch. */
size_t place_names_of_page(
    struct place_names *names, const struct row *row, struct counted_for ret[PLACE_NAMES_MAX]);
size_t place_names_of_site(
    struct place_names *names, const struct row *row, struct counted_for ret[PLACE_NAMES_MAX]);
size_t place_names_of_visit(struct place_names *names, const struct row *row, bool with_page,
    struct counted_for ret[PLACE_NAMES_MAX]);

#endif
