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

#define SLOT_TIMEOUTS    2           /* a slot is so long: how long a visitor is remembered */
#define SLOTS_BACK       2           /* the slot of the arrival, and the one before */
#define UNCOUNTED_S      (48 * 3600) /* how long a slot stays for events that wait in a log */
#define TIME_BYTES       5
#define VALUE_BYTES      (2 * TIME_BYTES)
#define INDEX_BYTES      4
#define DAY_BYTES        3
#define GENERATION_BYTES 5
#define USER_BYTES       (VALUE_BYTES + INDEX_BYTES + DAY_BYTES + GENERATION_BYTES)
#define DAY_ZERO         (1 << 22)          /* 1970-01-01; 0: no day */
#define BOUNCE_BIT       (INT64_C(1) << 39) /* of the last event's time: it is the only one */

/* Some visitors of a site whose first event here arrived in the same slot.
 *
 * The first events may be counted already: that is not known before the answers.  By then another
 * process may have counted events that arrived in a later slot.  So the slots up to that of the
 * last event here are asked, too, and the one behind it if that has begun.  The slot before is not
 * asked about whom a later one is expected to have: what it says of such a visitor is over. */
struct group {
    const struct row_site *site;
    int64_t slot, last_slot;
    struct chain visitors;
    uint32_t n_before; /* who is asked for in the slot before, too */
    bool is_new;       /* Redis has no hash for the slot */
};

struct visitor {
    struct visitor_id id;
    int64_t last_s, arrival_s; /* of the last event; if is_known */
    uint64_t generation;       /* of the index; 0: there is none */
    uint32_t index;
    int32_t active_day;
    uint32_t group, next;
    bool is_expected; /* to have an index.. */
    bool is_in_slot;  /* ..in no slot before the group's */
    bool is_known;
    bool is_bounce; /* the visit has one event so far */
    bool is_added;  /* to be written */
};

struct merge_visits {
    int64_t timeout_s;
    int64_t now_slot;    /* what has been counted arrived in this slot or before it */
    uint64_t generation; /* of users, now */
    struct group *groups;
    struct visitor *visitors;
    size_t n_groups, n_visitors;
    size_t groups_capacity, visitors_capacity;
    size_t answering, answered; /* the group whose answers come; how many came of those before */
    struct index visitor_index;
};

/* Append the key of the hash of @slot as a word. */
void visit_write_key(struct buffer *out, const char *tag, struct slice site, int64_t slot);

/* Does Redis remember the visitor's index, of the generation of users now? */
static inline bool visitor_has_index(
    const struct merge_visits *merge, const struct visitor *visitor)
{
    return visitor->generation != 0 && visitor->generation == merge->generation;
}

#endif
