/* share_state.h - the insides of a share.
 *
 * Layer: storage, private to share.c (what a partition's share reads), share_decide.c (what of it
 * is counted) and share_write.c (the commands that come of it).
 */
#ifndef STORAGE_FOLD_SHARE_STATE_H
#define STORAGE_FOLD_SHARE_STATE_H

#include <xxhash.h>

#include "storage/fold/batch.h"
#include "storage/fold/cut.h"
#include "storage/known/memory.h"
#include "storage/merge/merge_activity.h"
#include "storage/merge/merge_counts.h"
#include "storage/merge/merge_first.h"
#include "storage/merge/merge_seen.h"
#include "storage/merge/merge_visits.h"
#include "storage/places/names.h"
#include "storage/places/places.h"
#include "storage/schema/partition_state.h"
#include "storage/schema/tombstones.h"

#define MEMBERS_MAX 1000 /* one SADD has at most so many */
#define OLDEST_NONE INT64_MAX

/* Fields of the state that are read behind the view's: from FIELD_CURSORS on, cursors of logs. */
enum { FIELD_USERS = STATE_FIELDS, FIELD_DELETED, FIELD_DELETING, FIELD_CURSORS };

/* Members for the partition's set `open`, or `sites`, which are not known to be in that set. */
struct members {
    struct slice *texts; /* owned array; the bytes are the arena's */
    size_t n, capacity;
};

struct share {
    struct core *core;
    struct fold_memory *memory;
    struct merge_counts *counts;
    struct merge_visits *visits;
    struct merge_activity *activity;
    struct merge_seen *seen;
    struct merge_first *first;
    struct place_names names;

    const struct batch *batch;
    struct cut cut;
    uint32_t *tasks; /* of the cut, in the order of arrival; in the arena */
    const char *tag;
    size_t n_visit_questions; /* SHARE_STATE has so many about visits */
    size_t n_place_questions; /* the step that was written last has so many about places */
    bool asks_first;          /* a row asks which of its actions were first */
    int64_t recent_s;         /* counters of minutes from this instant on are remembered, UTC */
    bool asks_last;           /* SHARE_LAST and the steps behind it may have questions */
    /* A look that ended with SHARE_AGAIN tells the next one which hours of this partition are
     * closed.  Without `known` it tells nothing. */
    struct places_view hours_as_read;
    unsigned hours_partition;
    bool near_caps; /* the counters of closed hours are read before the decision: see places.h */

    /* What was read. */
    struct slice read[FIELD_CURSORS + BATCH_LOGS]; /* as fold.lua compares them, in the arena */
    bool is_ours;
    bool relies_on_users; /* the questions rest on what is known of users */
    struct partition_view view;
    struct log_cursor *cursors; /* of each log of the batch; in the arena */
    bool generation_held;      /* no user was forgotten since that was known, and nothing deleted */
    struct tombstones deleted; /* sites and pages that are deleted; in the arena */

    /* What was decided. */
    int64_t now_ms;             /* Redis's clock behind the WATCH, UTC */
    struct log_cursor *targets; /* where each log's cursor moves; in the arena */
    bool moves[BATCH_LOGS];     /* the cursor of the log moves */
    bool late;                  /* a bucket closed for writers is written to */
    int64_t oldest_s;           /* the oldest minute that is written to */
    size_t n_rows;              /* tasks whose sites are not deleted */
    size_t n_events;            /* tasks of kind TASK_SITE: an event has one, in one partition */
    struct activity_day day;    /* the day of day_minute_s in day_zone, made once */
    int64_t day_minute_s;
    const struct zone *day_zone;
    struct members open, sites;
    const struct row_site *last_site; /* the one that was announced last */
    struct arena arena;
    bool failed;                     /* memory was short */
    uint64_t fold;                   /* hash of the id that this fold gives the state */
    size_t counts_reply, seen_reply; /* the first answers that belong to `counts`, to `seen` */
};

/* The row of the cut's task number @task. */
static inline const struct row *task_row(
    const struct share *s, uint32_t task, enum task_kind *ret_kind)
{
    uint32_t found = s->tasks[task - s->cut.from];
    *ret_kind = task_kind_of(found);
    return &s->batch->rows[task_row_number(found)];
}

/* What the memory has of the row's user.  NULL: nothing. */
static inline const struct known_user *share_known_user(
    const struct share *s, const struct row *row)
{
    return known_users_find(&s->memory->users, s->cut.partition, &row->user_id);
}

/* Have @member added to a set, unless the set is known to have the member. */
void share_announce(struct share *s, struct members *members, struct slice member);

/* Does the task deal with the row's user? */
static inline bool task_has_user(const struct row *row, enum task_kind kind)
{
    return kind == TASK_USER || (kind == TASK_VISIT && row->user_is_visitor);
}

/* Does a deletion take counters of the partition away?  Then what counters had does not hold. */
static inline bool share_is_swept(const struct share *s)
{
    return s->read[FIELD_DELETING].n > 1;
}

/* What the memory has of the partition's keys, for merge_counts_write(). */
static inline struct known_keys share_known_keys(const struct share *s)
{
    return (struct known_keys){.expiries = &s->memory->hashes,
        .sketches = &s->memory->sketches,
        .counts = share_is_swept(s) ? NULL : &s->memory->shared->counts,
        .partition = s->cut.partition};
}

/* Is the row of a site that was deleted since it arrived? */
static inline bool share_drops(const struct share *s, const struct row *row)
{
    int64_t arrival_ms = s->batch->entries[row->entry].entry->arrival_ms;
    return arrival_ms < s->deleted.last_ms &&
           tombstones_cover(&s->deleted, row->site->name, arrival_ms);
}

/* Was the row's page deleted since the row arrived?  Then it counts for the site alone. */
static inline bool share_drops_page(const struct share *s, const struct row *row)
{
    int64_t arrival_ms = s->batch->entries[row->entry].entry->arrival_ms;
    return arrival_ms < s->deleted.last_ms &&
           tombstones_cover_page(&s->deleted, row->site->name, row->page, arrival_ms);
}

#endif
