/* state.h - the insides of places.
 *
 * Layer: storage, private to places.c (which name has a place) and write.c (what Redis is
 * asked and told).
 */
#ifndef STORAGE_PLACES_STATE_H
#define STORAGE_PLACES_STATE_H

#include "storage/base/index.h"
#include "storage/base/known_hashes.h"
#include "storage/core/core.h"
#include "storage/places/wanted.h"

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
    uint32_t first_place, last_place;
    uint32_t first_class; /* the last one that was made */
};

/* A question, and where its answers go. */
struct place_question {
    uint32_t hour;
    uint32_t first, last; /* of the list of names: [first, last) */
    bool before;          /* of the hour before; else the hour's classes are asked for, in front */
};

struct places {
    const struct core *core;
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
};

#endif
