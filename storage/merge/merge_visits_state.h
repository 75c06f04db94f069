/* merge_visits_state.h - the insides of the merging of visits.
 *
 * Layer: storage, private to merge_visits.c (who is asked for, and what an event does) and
 * merge_visits_write.c (what Redis shall remember).
 */
#ifndef STORAGE_MERGE_MERGE_VISITS_STATE_H
#define STORAGE_MERGE_MERGE_VISITS_STATE_H

#include "storage/base/buffer.h"
#include "storage/base/chain.h"
#include "storage/schema/hashed_event.h"

#define SLOT_TIMEOUTS    2 /* a slot has so many timeouts; a visitor is remembered as long */
#define SLOTS_BACK       2 /* the slot of an arrival is asked for, and the one before */
#define UNCOUNTED_S      (48 * 3600) /* a slot stays so much longer for events that wait in a log */
#define TIME_BYTES       5
#define VALUE_BYTES      (2 * TIME_BYTES)
#define INDEX_BYTES      4
#define DAY_BYTES        3
#define GENERATION_BYTES 5
#define USER_BYTES       (VALUE_BYTES + INDEX_BYTES + DAY_BYTES + GENERATION_BYTES)
#define DAY_ZERO         (1 << 22)          /* stands for 1970-01-01; 0 stands for no day */
#define BOUNCE_BIT       (INT64_C(1) << 39) /* in the last event's time: the visit has no other */

/* Some visitors of a site whose first events in this share arrived in the same slot.
 *
 * These events may be counted already, which only the answers show.  Then another process may have
 * counted events that arrived in a later slot.  So Redis is asked for the slots up to that of the
 * last event in the share, and for the next one if it has begun.  The slot before the group's is
 * not asked for visitors whom a later slot is expected to have: what it says of them is out of
 * date. */
struct group {
    const struct row_site *site;
    int64_t slot, last_slot; /* last_slot is the latest slot that is asked for */
    struct chain visitors;
    uint32_t n_before; /* so many visitors are asked for in the slot before `slot`, too */
    bool is_new;       /* Redis has no hash for `slot` */
};

struct visitor {
    struct visitor_id id;
    int64_t last_s, arrival_s; /* if is_known: time and arrival of the last event, UTC */
    uint64_t generation;       /* the index holds for this one; 0: there is no index */
    uint32_t index;
    int32_t active_day;
    uint32_t group, next; /* the next visitor of the group */
    bool is_expected;     /* Redis is said to have the visit with an index */
    bool is_in_slot;      /* Redis is said to have the visit in no slot before the group's */
    bool is_known;        /* an event of the visitor is remembered */
    bool is_bounce;       /* the visit has one event so far */
    bool is_added;        /* the visit is to be written */
};

struct merge_visits {
    int64_t timeout_s;
    int64_t now_slot;    /* no counted event arrived in a later slot */
    uint64_t generation; /* the hash of the users' generation, 40 bits; 0: not set yet */
    struct group *groups;
    struct visitor *visitors;
    size_t n_groups, n_visitors;
    size_t groups_capacity, visitors_capacity;
    size_t answering; /* the next answer belongs to this group */
    size_t answered;  /* so many answers belong to the groups before */
    struct index visitor_index;
};

/* Begin a command about the hash of @slot; @n words must follow (resp.h). */
void visit_command(struct buffer *out, const char *command, const char *tag, struct slice site,
    int64_t slot, size_t n);

/* Has the visitor an index that holds for the users' generation now? */
static inline bool visitor_has_index(
    const struct merge_visits *merge, const struct visitor *visitor)
{
    return visitor->generation != 0 && visitor->generation == merge->generation;
}

#endif
