#include "storage/fold/places.h"

#include <stdlib.h>

#include "storage/base/index.h"
#include "storage/job/counted_name.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

#define AT_ONCE 1000 /* names in one question */
#define HOUR_MS (INT64_C(3600) * 1000)

/* The places of an hour are kept while late events may come, and while it is written to. */
#define KEEP_MS      (26 * HOUR_MS)
#define KEEP_LATE_MS (HOUR_MS / 4)

/* The fields of the hash; what follows the mark. */
#define FIELD_NAME   'n' /* keyed hash of a name: since when it has its place */
#define FIELD_CLASS  'c' /* a class: how many of its names have one */
#define FIELD_FULL   'f' /* a class: since when some have none */
#define FIELD_START  's' /* in front of the mark: of visits that begin */
#define CLASS_FIELDS 2   /* fields of a class */

enum place_state {
    PLACE_OPEN,  /* Redis does not know the name, as far as is known */
    PLACE_STAYS, /* it had one in the hour before, and none yet in this */
    PLACE_HELD,  /* it has one */
};

struct place {
    struct slice name;
    uint64_t hash;  /* keyed */
    uint64_t known; /* its hash in known_places */
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
    const struct known_places *known;
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

struct places *places_new(const struct core *core)
{
    struct places *places = calloc(1, sizeof(*places));
    if (places != NULL) {
        places->core = core;
    }
    return places;
}

void places_free(struct places *places)
{
    if (places != NULL) {
        free(places->all);
        free(places->classes);
        free(places->hours);
        free(places->asked);
        free(places->questions);
        index_release(&places->index);
        index_release(&places->hour_index);
        free(places);
    }
}

void places_begin(struct places *places, unsigned partition, const struct known_places *known)
{
    places->partition = partition;
    places->known = known;
    places->n = places->n_classes = places->n_hours = places->n_asked = places->n_questions = 0;
    places->last_hour = 0;
    index_clear(&places->index);
    index_clear(&places->hour_index);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * 0x9e3779b97f4a7c15u;
}

/* ---- names, classes, hours ---- */

/* How many names of a class a partition gives a place.  Names that are spread over the partitions
 * are spread unevenly, so each has twice its share.  Visits of a page lie in all of them. */
static uint64_t cap_of(const struct places *places, struct slice name, enum places_table table)
{
    const struct storage_config *config = &places->core->config;
    uint64_t parts = places->core->partitions.n;
    uint64_t all = event_name_is(name)               ? config->max_events
                   : counted_name_mark(name) != '\0' ? config->max_values
                                                     : config->max_pages;
    if (counted_name_at_site(name) || table == PLACES_STARTS || parts == 1) {
        return all;
    }
    return (2 * all + parts - 1) / parts;
}

/* Is the number of such names bounded? */
static bool is_capped(const struct places *places, const struct place_wanted *wanted)
{
    return wanted->name.n > 0 && counted_name_mark(wanted->name) != NAME_MARK_SECTION &&
           cap_of(places, wanted->name, wanted->table) > 0;
}

struct hour_wanted {
    const struct places *places;
    const struct row *row;
};

static bool is_hour(const void *context, uint32_t item)
{
    const struct hour_wanted *w = context;
    const struct place_hour *hour = &w->places->hours[item];
    return w->row->at_s >= hour->bucket.start_s && w->row->at_s < hour->bucket.end_s &&
           hour->site_hash == w->row->site_hash && slice_equal(hour->site, w->row->site);
}

/* The number of the row's hour; INDEX_NONE: out of memory. */
static uint32_t find_hour(struct places *places, const struct row *row)
{
    struct hour_wanted wanted = {places, row};
    if (places->last_hour < places->n_hours && is_hour(&wanted, places->last_hour)) {
        return places->last_hour;
    }
    if (!index_reserve(&places->hour_index) ||
        !array_reserve(
            &places->hours, &places->hours_capacity, places->n_hours, sizeof(*places->hours))) {
        return INDEX_NONE;
    }
    struct bucket bucket = bucket_at(row->zone, LEVEL_HOUR, row->at_s);
    uint64_t hash = mix(row->site_hash, (uint64_t)bucket.start_s);
    struct index_slot *slot = index_find(&places->hour_index, hash, is_hour, &wanted);
    if (slot->item == INDEX_NONE) {
        uint32_t item = (uint32_t)places->n_hours++;
        places->hours[item] = (struct place_hour){.site = row->site,
            .site_hash = row->site_hash,
            .bucket = bucket,
            .before = bucket_at(row->zone, LEVEL_HOUR, bucket.start_s - 1),
            .first_place = INDEX_NONE,
            .last_place = INDEX_NONE,
            .first_class = INDEX_NONE};
        index_set(&places->hour_index, slot, hash, item);
    }
    return places->last_hour = slot->item;
}

/* The number of a class; INDEX_NONE: out of memory. */
static uint32_t find_class(struct places *places, const struct place_wanted *wanted, uint32_t hour)
{
    struct slice text = counted_name_class(wanted->name);
    uint32_t item = places->hours[hour].first_class;
    for (; item != INDEX_NONE; item = places->classes[item].next) {
        const struct place_class *class = &places->classes[item];
        if (class->table == wanted->table && slice_equal(class->text, text)) {
            return item;
        }
    }
    if (!array_reserve(&places->classes, &places->classes_capacity, places->n_classes,
            sizeof(*places->classes))) {
        return INDEX_NONE;
    }
    places->classes[places->n_classes] = (struct place_class){.text = text,
        .table = wanted->table,
        .hour = hour,
        .next = places->hours[hour].first_class,
        .cap = cap_of(places, wanted->name, wanted->table)};
    return places->hours[hour].first_class = (uint32_t)places->n_classes++;
}

struct name_wanted {
    const struct places *places;
    const struct place_wanted *wanted;
    uint32_t hour;
};

static bool same_name(const void *context, uint32_t item)
{
    const struct name_wanted *w = context;
    const struct place *place = &w->places->all[item];
    return w->places->classes[place->class].hour == w->hour && place->table == w->wanted->table &&
           slice_equal(place->name, w->wanted->name);
}

/* Where the name is, or belongs; NULL: out of memory. */
static struct index_slot *find_slot(struct places *places, const struct place_wanted *wanted,
    uint32_t *ret_hour, uint64_t *ret_hash)
{
    uint32_t hour = find_hour(places, wanted->row);
    if (hour == INDEX_NONE || !index_reserve(&places->index)) {
        return NULL;
    }
    struct name_wanted name = {places, wanted, hour};
    *ret_hour = hour;
    *ret_hash = mix(wanted->hash, hour * 2u + (unsigned)wanted->table);
    return index_find(&places->index, *ret_hash, same_name, &name);
}

bool places_ask(struct places *places, const struct place_wanted *wanted)
{
    uint32_t hour;
    uint64_t index_hash;
    if (!is_capped(places, wanted)) {
        return true;
    }
    struct index_slot *slot = find_slot(places, wanted, &hour, &index_hash);
    if (slot == NULL || slot->item != INDEX_NONE) {
        return slot != NULL;
    }
    uint32_t class = find_class(places, wanted, hour);
    const struct secret *secret = atomic_load(&places->core->secret);
    if (class == INDEX_NONE || secret == NULL ||
        !array_reserve(&places->all, &places->capacity, places->n, sizeof(*places->all))) {
        return false;
    }
    struct place place = {
        .name = wanted->name, .class = class, .next = INDEX_NONE, .table = wanted->table};
    place.hash = identity_name(secret, wanted->name);
    place.known = mix(mix(place.hash, places->hours[hour].site_hash),
        (uint64_t)places->hours[hour].bucket.start_s ^ (uint64_t)places->partition << 48 ^
            (uint64_t)wanted->table << 60);
    place.was = known_places_has(places->known, place.known) ? PLACE_HELD : PLACE_OPEN;
    uint32_t item = (uint32_t)places->n++;
    places->all[item] = place;
    index_set(&places->index, slot, index_hash, item);
    struct place_hour *of = &places->hours[hour];
    if (of->last_place == INDEX_NONE) {
        of->first_place = item;
    } else {
        places->all[of->last_place].next = item;
    }
    of->last_place = item;
    return true;
}

/* ---- questions ---- */

static uint32_t hour_of(const struct places *places, uint32_t item)
{
    return places->classes[places->all[item].class].hour;
}

/* The names that Redis must be asked for, hour by hour.  False: out of memory. */
static bool choose_asked(struct places *places)
{
    for (size_t hour = 0; hour < places->n_hours; hour++) {
        uint32_t i = places->hours[hour].first_place;
        for (; i != INDEX_NONE; i = places->all[i].next) {
            if (places->all[i].was == PLACE_HELD) {
                continue;
            }
            if (!array_reserve(&places->asked, &places->asked_capacity, places->n_asked,
                    sizeof(*places->asked))) {
                return false;
            }
            places->asked[places->n_asked++] = i;
        }
    }
    return true;
}

static void write_field(struct buffer *out, char mark, enum places_table table, struct slice rest)
{
    char text[2 + NAME_CLASS_MAX];
    size_t n = 0;
    if (table == PLACES_STARTS) {
        text[n++] = FIELD_START;
    }
    text[n++] = mark;
    if (rest.n > 0) {
        memcpy(text + n, rest.p, rest.n);
    }
    resp_word(out, text, n + rest.n);
}

static void write_name(struct buffer *out, const struct place *place)
{
    struct slice hash = {(const char *)&place->hash, sizeof(place->hash)};
    write_field(out, FIELD_NAME, place->table, hash);
}

/* The first of the classes that are asked for; INDEX_NONE: none is. */
static uint32_t first_class(const struct places *places, const struct place_question *question)
{
    return question->before ? INDEX_NONE : places->hours[question->hour].first_class;
}

static void write_question(const struct places *places, const struct place_question *question,
    const char *tag, struct buffer *out)
{
    const struct place_hour *hour = &places->hours[question->hour];
    uint32_t c = first_class(places, question);
    size_t n = 2 + (question->last - question->first);
    struct key key;
    for (; c != INDEX_NONE; c = places->classes[c].next) {
        n += CLASS_FIELDS;
    }
    key_places(&key, tag, hour->site, question->before ? hour->before : hour->bucket);
    resp_head(out, n);
    resp_text(out, "HMGET");
    resp_word(out, key.p, key.n);
    for (c = first_class(places, question); c != INDEX_NONE; c = places->classes[c].next) {
        write_field(out, FIELD_CLASS, places->classes[c].table, places->classes[c].text);
        write_field(out, FIELD_FULL, places->classes[c].table, places->classes[c].text);
    }
    for (uint32_t i = question->first; i < question->last; i++) {
        write_name(out, &places->all[places->asked[i]]);
    }
}

/* Ask for some names of one hour, in that hour and in the one before.  False: out of memory. */
static bool ask_some(
    struct places *places, uint32_t first, uint32_t last, const char *tag, struct buffer *out)
{
    for (int before = 0; before < 2; before++) {
        if (!array_reserve(&places->questions, &places->questions_capacity, places->n_questions,
                sizeof(*places->questions))) {
            return false;
        }
        struct place_question *question = &places->questions[places->n_questions++];
        *question = (struct place_question){.hour = hour_of(places, places->asked[first]),
            .first = first,
            .last = last,
            .before = before == 1};
        write_question(places, question, tag, out);
    }
    return true;
}

size_t places_write_questions(struct places *places, const char *tag, struct buffer *out)
{
    bool ok = choose_asked(places);
    for (uint32_t first = 0; ok && first < places->n_asked;) {
        uint32_t last = first;
        while (last < places->n_asked && last - first < AT_ONCE &&
               hour_of(places, places->asked[last]) == hour_of(places, places->asked[first])) {
            last++;
        }
        ok = ask_some(places, first, last, tag, out);
        first = last;
    }
    out->failed = out->failed || !ok;
    return places->n_questions;
}

bool places_take(struct places *places, size_t i, const struct reply *reply)
{
    const struct place_question *question = &places->questions[i];
    size_t at = 0;
    if (reply->type != REPLY_ARRAY) {
        return false;
    }
    uint32_t c = first_class(places, question);
    for (; c != INDEX_NONE && at + CLASS_FIELDS <= reply->n; c = places->classes[c].next) {
        int64_t n = reply_integer(&reply->items[at++], 0);
        places->classes[c].n = n > 0 ? (uint64_t)n : 0;
        places->classes[c].full_ms = reply_integer(&reply->items[at++], 0);
    }
    if (c != INDEX_NONE || reply->n - at != question->last - question->first) {
        return false;
    }
    for (uint32_t k = question->first; k < question->last; k++) {
        struct place *place = &places->all[places->asked[k]];
        const struct reply *since = &reply->items[at++];
        if (since->type == REPLY_TEXT && place->was != PLACE_HELD) {
            place->was = question->before ? PLACE_STAYS : PLACE_HELD;
            place->since_ms = reply_integer(since, 0);
        }
    }
    return true;
}

/* ---- deciding ---- */

void places_decide(struct places *places)
{
    for (size_t i = 0; i < places->n; i++) {
        places->all[i].is_new = places->all[i].is_over = false;
    }
    for (size_t i = 0; i < places->n_classes; i++) {
        places->classes[i].added = 0;
        places->classes[i].refuses = false;
    }
}

/* Is there a place for a name that has none yet?  One that had a place in the hour before gets one,
 * but not where it may have been refused already: it was not, if it had that place before the first
 * name was. */
static bool is_free(const struct place *place, const struct place_class *class)
{
    bool stays =
        place->was == PLACE_STAYS && (class->full_ms == 0 || place->since_ms < class->full_ms);
    bool is_open = class->full_ms == 0 && !class->refuses && class->n + class->added < class->cap;
    return !place->is_over && (stays || is_open);
}

bool places_has(struct places *places, const struct place_wanted *wanted)
{
    uint32_t hour;
    uint64_t hash;
    if (!is_capped(places, wanted)) {
        return true;
    }
    const struct index_slot *slot = find_slot(places, wanted, &hour, &hash);
    if (slot == NULL || slot->item == INDEX_NONE) {
        return true; /* out of memory, or nobody asked: a name too many does less harm than none */
    }
    struct place *place = &places->all[slot->item];
    if (place->was == PLACE_HELD || place->is_new) {
        return true;
    }
    struct place_class *class = &places->classes[place->class];
    if (is_free(place, class)) {
        place->is_new = true;
        class->added++;
        return true;
    }
    place->is_over = class->refuses = true;
    return false;
}

/* ---- commands ---- */

static bool is_newly_full(const struct place_class *class)
{
    return class->full_ms == 0 && class->refuses;
}

/* How many names of the hour got a place, and how many fields its classes have to be told of. */
static size_t new_of_hour(
    const struct places *places, const struct place_hour *hour, size_t *ret_fields)
{
    size_t n = 0;
    *ret_fields = 0;
    for (uint32_t c = hour->first_class; c != INDEX_NONE; c = places->classes[c].next) {
        n += places->classes[c].added;
        *ret_fields += places->classes[c].added > 0;
        *ret_fields += is_newly_full(&places->classes[c]);
    }
    return n;
}

static void write_class(const struct place_class *class, int64_t now_ms, struct buffer *out)
{
    if (class->added > 0) {
        write_field(out, FIELD_CLASS, class->table, class->text);
        resp_decimal(out, (int64_t)(class->n + class->added));
    }
    if (is_newly_full(class)) {
        write_field(out, FIELD_FULL, class->table, class->text);
        resp_decimal(out, now_ms);
    }
}

/* HSET of the new places, some at a time; with the first ones the @n_fields of the classes. */
static size_t write_places(const struct places *places, const struct place_hour *hour,
    const struct key *key, size_t n_new, size_t n_fields, int64_t now_ms, struct buffer *out)
{
    size_t n = 0;
    for (uint32_t i = hour->first_place; n_new > 0 || n_fields > 0; n++) {
        size_t now = n_new < AT_ONCE ? n_new : AT_ONCE;
        resp_head(out, 2 + 2 * (now + n_fields));
        resp_text(out, "HSET");
        resp_word(out, key->p, key->n);
        uint32_t c = n_fields > 0 ? hour->first_class : INDEX_NONE;
        for (; c != INDEX_NONE; c = places->classes[c].next) {
            write_class(&places->classes[c], now_ms, out);
        }
        n_fields = 0;
        n_new -= now;
        for (; now > 0; i = places->all[i].next) {
            if (places->all[i].is_new) {
                write_name(out, &places->all[i]);
                resp_decimal(out, now_ms);
                now--;
            }
        }
    }
    return n;
}

size_t places_write(
    const struct places *places, const char *tag, int64_t now_ms, struct buffer *out)
{
    size_t n = 0;
    for (size_t i = 0; i < places->n_hours; i++) {
        const struct place_hour *hour = &places->hours[i];
        size_t n_fields;
        size_t n_new = new_of_hour(places, hour, &n_fields);
        if (n_fields == 0) {
            continue;
        }
        struct key key;
        bool late = hour->bucket.end_s * 1000 + KEEP_MS < now_ms;
        key_places(&key, tag, hour->site, hour->bucket);
        n += write_places(places, hour, &key, n_new, n_fields, now_ms, out);
        resp_head(out, 3);
        resp_text(out, "PEXPIRE");
        resp_word(out, key.p, key.n);
        resp_decimal(out, late ? KEEP_LATE_MS : KEEP_MS);
        n++;
    }
    return n;
}

void places_learn(const struct places *places, struct known_places *known)
{
    for (size_t i = 0; i < places->n; i++) {
        if (places->all[i].was == PLACE_HELD || places->all[i].is_new) {
            known_places_add(known, places->all[i].known);
        }
    }
}
