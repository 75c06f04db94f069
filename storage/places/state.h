/* state.h - the insides of places.
 *
 * Layer: storage, private to places.c (which name has a place), write.c (what Redis is asked and
 * told) and old_hours.c (the same of hours that are long over).
 */
#ifndef STORAGE_PLACES_STATE_H
#define STORAGE_PLACES_STATE_H

#include "storage/base/buffer.h"
#include "storage/base/index.h"
#include "storage/base/known_hashes.h"
#include "storage/core/core.h"
#include "storage/places/wanted.h"
#include "storage/redis/reply.h"

enum place_state {
    PLACE_OPEN,  /* Redis does not know the name, as far as is known */
    PLACE_STAYS, /* it had one in the hour before, and none yet in this */
    PLACE_HELD,  /* it has one */
};

struct place {
    struct slice name;
    uint64_t hash;  /* keyed */
    uint64_t known; /* its hash in places->known */
    uint32_t class;
    uint32_t next; /* of the same hour */
    enum places_table table;
    enum place_state was;
    int64_t since_ms;     /* PLACE_STAYS: when it got its place in the hour before */
    bool is_new, is_over; /* decided */
};

/* A class of names in an hour of a site. */
struct place_class {
    struct slice text; /* of any of its names */
    enum places_table table;
    uint32_t hour;
    uint32_t next; /* of the same hour */
    uint64_t cap;
    uint64_t n;      /* places that are taken, as was read.. */
    uint64_t added;  /* ..and since */
    int64_t full_ms; /* since when names were refused; 0: none was.. */
    bool refuses;    /* ..and now one is */
};

struct place_hour {
    struct slice site;
    uint64_t site_hash;
    struct bucket bucket, before;
    bool is_old;                  /* see old_hours.c; then: */
    struct bucket month;          /* whose hash has the places.. */
    struct bucket month_before;   /* ..and those of the hour before */
    size_t records_at, n_records; /* what was read, in places->records */
    uint32_t first_place, last_place;
    uint32_t first_class; /* the last one that was made */
};

/* A question, and where its answers go. */
struct place_question {
    uint32_t hour;
    uint32_t first, last; /* of the list of names: [first, last) */
    bool before;          /* of the hour before; else the hour's classes are asked for, in front */
};

/* The same of an old hour. */
struct old_question {
    uint32_t hour;
    bool before;
};

struct places {
    struct core *core;
    unsigned partition;
    const struct known_hashes *known;
    bool relies;       /* on what is known */
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
    uint32_t last_hour; /* that was found last */
    int64_t now_ms;     /* Redis's clock, about */

    /* Of old hours. */
    struct index old_index; /* names, by their keyed hashes */
    struct buffer records;
    struct old_question *old_questions; /* owned */
    size_t n_old_questions, old_questions_capacity, n_old_answered;
};

static inline bool place_class_is_newly_full(const struct place_class *class)
{
    return class->full_ms == 0 && class->refuses;
}

/* How many names of the hour got a place, and how many fields its classes have to be told of. */
size_t places_new_of_hour(
    const struct places *places, const struct place_hour *hour, size_t *ret_fields);

/* ---- old_hours.c ---- */

/* The places of an hour are kept so long while late events may come.  An hour that ended longer ago
 * is old. */
#define PLACES_KEEP_MS ((int64_t)26 * 3600 * 1000)

void old_hours_begin(struct places *places);
void old_hours_release(struct places *places);

/* The hour is old: find its months. */
void old_hour_init(struct place_hour *hour, const struct zone *zone);

/* The name was asked for, in an old hour.  False: out of memory. */
bool old_hours_ask(struct places *places, uint32_t item) MUST_CHECK;

/* As places_write_questions(), places_take() and places_write(). */
size_t old_hours_write_questions(struct places *places, const char *tag, struct buffer *out);
bool old_hours_take(struct places *places, const struct reply *reply) MUST_CHECK;
size_t old_hours_write(
    const struct places *places, const char *tag, int64_t now_ms, struct buffer *out);

#endif
