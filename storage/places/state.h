/* state.h - the insides of places.
 *
 * Layer: storage, private to places.c (which name has a place), write.c (what Redis is asked and
 * told) and closed_hours.c (what the counters of an hour say of its places).
 */
#ifndef STORAGE_PLACES_STATE_H
#define STORAGE_PLACES_STATE_H

#include "storage/base/buffer.h"
#include "storage/base/chain.h"
#include "storage/base/known_hashes.h"
#include "storage/core/core.h"
#include "storage/places/wanted.h"
#include "storage/redis/reply.h"
#include "storage/schema/key.h"

enum place_state {
    PLACE_OPEN,  /* the name has no place in Redis, as far as is known */
    PLACE_STAYS, /* the name had a place in the hour before, and has none yet in this hour */
    PLACE_HELD,  /* the name has a place in this hour */
};

/* A name in an hour. */
struct place {
    struct slice name;
    uint64_t hash;  /* the name's keyed hash */
    uint64_t known; /* the hash of the place in places->known */
    uint32_t class;
    uint32_t next; /* the next place of the hour */
    enum places_table table;
    enum place_state was; /* as the answers say */
    int64_t since_ms;     /* PLACE_STAYS: when the name got its place in the hour before */
    bool is_new, is_over; /* decided: the name gets a place; the name is beyond the cap */
};

/* A class of names in an hour of a site. */
struct place_class {
    struct slice text; /* points into one of the class's names */
    enum places_table table;
    uint32_t hour;
    uint32_t next; /* the next class of the hour */
    uint64_t cap;
    uint64_t n;      /* so many places were taken when Redis was read */
    uint64_t added;  /* so many places were given since */
    int64_t full_ms; /* since when names have been refused, as was read; 0: none was */
    bool refuses;    /* a name is refused here */
};

/* An hour of a site. */
struct place_hour {
    const struct row_site *site;
    struct bucket bucket, before;
    bool is_closed;        /* the counters of the hour tell its names */
    bool before_is_closed; /* the same of the hour before */
    struct chain places;
    size_t first_staying, end_staying; /* names of the hour before that may stay */
    uint32_t first_class;              /* the head of the hour's classes: the one made last */
};

enum place_asks {
    ASK_HASH,   /* the hour's hash: what it has of the classes, then of the names */
    ASK_BEFORE, /* the hash of the hour before: what it has of the names */

    /* closed_hours.c */
    ASK_KEPT,            /* the hour's hash: whether places are kept for the names */
    ASK_COUNTERS,        /* whether the counters have the names, then what was put together */
    ASK_SIZE,            /* how many names the counters have */
    ASK_COUNTERS_BEFORE, /* whether the counters of the hour before have the names */
    ASK_LIST,            /* all names that the counters have */
    ASK_LIST_BEFORE,     /* the names with the highest counts in the hour before */
};

/* A question, and where its answers go. */
struct place_question {
    enum place_asks asks;
    uint32_t hour;
    uint32_t first, last;    /* the question is about the names places->asked[first, last) */
    enum places_table table; /* ASK_COUNTERS and the like ask only for those of this table */
};

/* A name that the counters of the hour before a closed one have. */
struct staying_name {
    uint64_t hash; /* keyed */
    uint32_t class;
};

struct places {
    const struct core *core;
    unsigned partition;
    const struct known_hashes *known;
    struct places_view view;
    bool relies;       /* a decision relies on what is known: see places_rely_on_known() */
    bool rests;        /* a decision rests on counters: see places_rest_on_counters() */
    struct place *all; /* owned */
    size_t n, capacity;
    struct index index;
    struct place_class *classes; /* owned; a few an hour */
    size_t n_classes, classes_capacity;
    struct place_hour *hours; /* owned */
    size_t n_hours, hours_capacity;
    struct index hour_index;
    uint32_t *asked; /* owned: names that Redis is asked for, hour by hour */
    size_t n_asked, asked_capacity;
    struct place_question *questions; /* owned */
    size_t n_questions, questions_capacity;
    size_t n_first_questions;     /* so many questions were asked before any answer */
    struct staying_name *staying; /* owned; hour by hour */
    size_t n_staying, staying_capacity;
    uint32_t last_hour; /* the hour that was looked up last */
};

static inline bool place_class_is_newly_full(const struct place_class *class)
{
    return class->full_ms == 0 && class->refuses;
}

/* The hash of an hour's places is kept so long behind the hour's end.  Then the hour is closed as a
 * rule, and its counters tell which names it has. */
#define PLACES_KEEP_MS (INT64_C(26) * 3600 * 1000)

/* How many names of the class of @name the partition gives a place; 0: as many as come. */
uint64_t places_cap_of(const struct places *places, struct slice name, enum places_table table);

/* ---- write.c ---- */

#define PLACES_AT_ONCE 1000 /* names in one question or command */

/* The fields of the hash; what follows the mark.  Those of names are keyed hashes. */
#define FIELD_NAME  'n' /* a name: since when it has its place */
#define FIELD_KEPT  'k' /* a name of the hour before: since when a place is kept for it */
#define FIELD_CLASS 'c' /* a class: how many of its names have a place */
#define FIELD_FULL  'f' /* a class: since when names have been refused */
#define FIELD_START 's' /* in front of the mark: the field is about visits that begin */

/* A field of @mark for the name whose keyed hash is @hash. */
void places_write_name(struct buffer *out, char mark, enum places_table table, uint64_t hash);

/* Add a question, which the caller writes.  False: out of memory. */
bool places_add_question(struct places *places, const struct place_question *question) MUST_CHECK;

/* ---- closed_hours.c ---- */

/* Do the counters of @hour tell its names?  Else its places stand in a hash alone. */
bool closed_hours_is(const struct places_view *view, struct bucket hour);

/* Ask what counters have of the names [first, last) of one hour.  False: out of memory. */
bool closed_hours_ask(struct places *places, uint32_t first, uint32_t last, const char *tag,
    struct buffer *out) MUST_CHECK;

/* The answers to the first questions are there: ask for the lists that are needed.  False: out of
 * memory. */
bool closed_hours_ask_lists(struct places *places, const char *tag, struct buffer *out) MUST_CHECK;

/* Take the answer to a question of this file.  False: the answer has another shape, or out of
 * memory. */
bool closed_hours_take(struct places *places, const struct place_question *question,
    const struct reply *reply) MUST_CHECK;

/* Write the commands that keep places for names of the hour before, if a class of the hour is full
 * from now on.  Returns how many commands there are. */
size_t closed_hours_write(const struct places *places, const struct place_hour *hour,
    const struct key *key, int64_t now_ms, struct buffer *out);

#endif
