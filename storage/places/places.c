#include "storage/places/places.h"

#include <stdlib.h>

#include "storage/base/index.h"
#include "storage/job/name_cap.h"
#include "storage/places/state.h"

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
        free(places->staying);
        index_release(&places->index);
        index_release(&places->hour_index);
        free(places);
    }
}

void places_begin(struct places *places, unsigned partition, const struct known_hashes *known,
    const struct places_view *view)
{
    array_relax(&places->all, &places->capacity, places->n, sizeof(*places->all));
    places->n = 0;
    ARRAY_CLEAR(places, classes);
    ARRAY_CLEAR(places, hours);
    ARRAY_CLEAR(places, asked);
    ARRAY_CLEAR(places, questions);
    ARRAY_CLEAR(places, staying);
    places->partition = partition;
    places->known = known;
    places->view = *view;
    places->relies = places->rests = false;
    places->last_hour = 0;
    index_clear(&places->index);
    index_clear(&places->hour_index);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * 0x9e3779b97f4a7c15u;
}

/* ---- names, classes, hours ---- */

uint64_t places_cap_of(const struct places *places, struct slice name, enum places_table table)
{
    return name_cap(
        &places->core->config, places->core->partitions.n, name, table == PLACES_STARTS);
}

/* Has the class of the name a cap? */
static bool is_capped(const struct places *places, const struct place_wanted *wanted)
{
    return places_cap_of(places, wanted->name, wanted->table) > 0;
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
           hour->site == w->row->site;
}

/* Find or make the row's hour.  Returns its index, INDEX_NONE: out of memory. */
static uint32_t find_hour(struct places *places, const struct row *row)
{
    struct hour_wanted wanted = {places, row};
    if (places->last_hour < places->n_hours && is_hour(&wanted, places->last_hour)) {
        return places->last_hour;
    }
    bool is_new;
    struct bucket bucket = bucket_at(row->site->zone, LEVEL_HOUR, row->at_s);
    uint64_t hash = mix(row->site->hash, (uint64_t)bucket.start_s);
    uint32_t item = INDEX_ADD(places, hour_index, hours, hash, is_hour, &wanted, &is_new);
    if (is_new) {
        places->hours[item] = (struct place_hour){.site = row->site,
            .bucket = bucket,
            .before = bucket_at(row->site->zone, LEVEL_HOUR, bucket.start_s - 1),
            .is_closed = closed_hours_is(&places->view, bucket),
            .before_is_closed = closed_hours_is(
                &places->view, bucket_at(row->site->zone, LEVEL_HOUR, bucket.start_s - 1)),
            .places = CHAIN_EMPTY,
            .first_class = INDEX_NONE};
    }
    return places->last_hour = item;
}

/* Find or make the class of the name in an hour.  Returns its index, INDEX_NONE: out of memory. */
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
    if (!ARRAY_RESERVE(places, classes)) {
        return INDEX_NONE;
    }
    places->classes[places->n_classes] = (struct place_class){.text = text,
        .table = wanted->table,
        .hour = hour,
        .next = places->hours[hour].first_class,
        .cap = places_cap_of(places, wanted->name, wanted->table)};
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

/* The slot of the index where the name is, or belongs.  NULL: out of memory. */
static struct index_slot *find_slot(
    struct places *places, const struct place_wanted *wanted, uint32_t hour, uint64_t *ret_hash)
{
    if (hour == INDEX_NONE || !index_reserve(&places->index)) {
        return NULL;
    }
    struct name_wanted name = {places, wanted, hour};
    *ret_hash = mix(wanted->hash, hour * 2u + (unsigned)wanted->table);
    return index_find(&places->index, *ret_hash, same_name, &name);
}

/* Do all names of the hour get a place at first, and the counters are asked later? */
static bool is_left_to_counters(const struct places *places, uint32_t hour)
{
    return places->hours[hour].is_closed && !places->view.reads_counters;
}

bool places_ask(struct places *places, const struct place_wanted *wanted)
{
    uint64_t index_hash;
    if (!is_capped(places, wanted)) {
        return true;
    }
    uint32_t hour = find_hour(places, wanted->row);
    if (hour != INDEX_NONE && is_left_to_counters(places, hour)) {
        places->rests = true;
        return true;
    }
    struct index_slot *slot = find_slot(places, wanted, hour, &index_hash);
    if (slot == NULL || slot->item != INDEX_NONE) {
        return slot != NULL;
    }
    uint32_t class = find_class(places, wanted, hour);
    const struct secret *secret = atomic_load(&places->core->secret);
    if (class == INDEX_NONE || secret == NULL ||
        !array_reserve(&places->all, &places->capacity, places->n, sizeof(*places->all))) {
        return false;
    }
    struct place place = {.name = wanted->name, .class = class, .table = wanted->table};
    place.hash = identity_name(secret, wanted->name);
    place.known = mix(mix(place.hash, places->hours[hour].site->hash),
        (uint64_t)places->hours[hour].bucket.start_s ^ (uint64_t)places->partition << 48 ^
            (uint64_t)wanted->table << 60);
    bool is_known = !places->hours[hour].is_closed && known_hashes_has(places->known, place.known);
    place.was = is_known ? PLACE_HELD : PLACE_OPEN;
    places->relies = places->relies || place.was == PLACE_HELD;
    uint32_t item = (uint32_t)places->n++;
    places->all[item] = place;
    index_set(&places->index, slot, index_hash, item);
    CHAIN_APPEND(&places->hours[hour].places, places->all, item);
    return true;
}

bool places_rely_on_known(const struct places *places)
{
    return places->relies;
}

bool places_rest_on_counters(const struct places *places)
{
    return places->rests;
}

bool places_hours_are(const struct places *places, const struct places_view *view)
{
    for (size_t i = 0; i < places->n_hours; i++) {
        const struct place_hour *hour = &places->hours[i];
        if (hour->is_closed != closed_hours_is(view, hour->bucket) ||
            (hour->places.n > 0 && hour->before_is_closed != closed_hours_is(view, hour->before))) {
            return false;
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

/* Is there a place for a name that has none yet?  A name that had a place in the hour before gets
 * one, unless this name may have been refused already.  It was not refused if it had the earlier
 * place before the first name was refused. */
static bool is_free(const struct place *place, const struct place_class *class)
{
    bool stays =
        place->was == PLACE_STAYS && (class->full_ms == 0 || place->since_ms < class->full_ms);
    bool is_open = class->full_ms == 0 && !class->refuses && class->n + class->added < class->cap;
    return !place->is_over && (stays || is_open);
}

bool places_has(struct places *places, const struct place_wanted *wanted)
{
    uint64_t hash;
    if (!is_capped(places, wanted)) {
        return true;
    }
    uint32_t hour = find_hour(places, wanted->row);
    if (hour == INDEX_NONE || is_left_to_counters(places, hour)) {
        return true;
    }
    const struct index_slot *slot = find_slot(places, wanted, hour, &hash);
    if (slot == NULL || slot->item == INDEX_NONE) {
        return true; /* no memory, or not asked for: a name too many does less harm than none */
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

void places_learn(const struct places *places, struct known_hashes *known)
{
    for (size_t i = 0; i < places->n; i++) {
        const struct place *place = &places->all[i];
        bool is_closed = places->hours[places->classes[place->class].hour].is_closed;
        if (!is_closed && (place->was == PLACE_HELD || place->is_new)) {
            known_hashes_add(known, place->known);
        }
    }
}
