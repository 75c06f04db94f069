/* closed_hours.c - the places of hours whose counters tell their names. */
#include "storage/job/counted_name.h"
#include "storage/places/state.h"
#include "storage/redis/resp.h"
#include "storage/schema/identity.h"
#include "storage/time/write_plan.h"

/* What Redis says of such an hour:
 *
 *     the hour's counters      the names that have a place, and whether a class is full: then it
 *                              has the name of what was put together
 *     those of the hour before the names that get a place all the same, until a class is full
 *     the hash of places       the names of the hour before, as a class became full.  One that
 *                              comes to the hour before later may have been refused here
 */

/* A name that comes to the hour before once a class is full has no place by that. */
#define SINCE_TOO_LATE INT64_MAX

/* A class is full, and nobody noted since when. */
#define FULL_LONG_AGO 1

bool closed_hours_is(const struct places_view *view, struct bucket hour)
{
    int64_t over_ms = expiry_ms(hour.end_s, retention_keep_s(&view->retention, hour));
    return view->known && closed_for_readers(&view->state, hour) &&
           (over_ms == 0 || view->now_ms < over_ms);
}

/* ---- questions ---- */

/* ZRANGE of all names of a table. */
static bool ask_list(
    struct places *places, struct place_question question, const char *tag, struct buffer *out)
{
    const struct place_hour *hour = &places->hours[question.hour];
    struct key key;
    if (!array_reserve(&places->questions, &places->questions_capacity, places->n_questions,
            sizeof(*places->questions))) {
        return false;
    }
    places->questions[places->n_questions++] = question;
    key_bucket(&key, tag, question.table == PLACES_STARTS ? KEY_VV : KEY_PV, hour->site,
        question.before ? hour->before : hour->bucket, SLICE(""));
    resp_head(out, 4);
    resp_text(out, "ZRANGE");
    resp_word(out, key.p, key.n);
    resp_decimal(out, 0);
    resp_decimal(out, -1);
    return true;
}

struct listed {
    const struct places *places;
    uint32_t hour;
    enum places_table table;
    uint64_t hash;
};

static bool same_listed(const void *context, uint32_t item)
{
    const struct listed *l = context;
    const struct place *place = &l->places->all[item];
    return place->hash == l->hash && place->table == l->table &&
           l->places->classes[place->class].hour == l->hour;
}

static uint64_t listed_hash(const struct listed *listed)
{
    return listed->hash ^ (listed->hour * 2u + (unsigned)listed->table);
}

/* Have the hour's names found by their keyed hashes. */
static bool index_names(struct places *places, uint32_t hour)
{
    for (uint32_t i = places->hours[hour].first_place; i != INDEX_NONE; i = places->all[i].next) {
        struct listed is = {places, hour, places->all[i].table, places->all[i].hash};
        if (!index_reserve(&places->listed_index)) {
            return false;
        }
        struct index_slot *slot =
            index_find(&places->listed_index, listed_hash(&is), same_listed, &is);
        if (slot->item == INDEX_NONE) {
            index_set(&places->listed_index, slot, listed_hash(&is), i);
        }
    }
    return true;
}

bool closed_hours_ask(struct places *places, const char *tag, struct buffer *out)
{
    for (uint32_t h = 0; h < places->n_hours; h++) {
        const struct place_hour *hour = &places->hours[h];
        if (!hour->is_closed || !places->view.reads_counters) {
            continue;
        }
        if (!index_names(places, h)) {
            return false;
        }
        for (int q = 0; q < 4; q++) {
            struct place_question question = {.hour = h,
                .before = q % 2 == 1,
                .lists = true,
                .table = q < 2 ? PLACES_COUNTS : PLACES_STARTS};
            if (hour->has_names[question.table] && !ask_list(places, question, tag, out)) {
                return false;
            }
        }
    }
    return true;
}

/* ---- answers ---- */

/* The class of @name, or the one that @name is put together of; INDEX_NONE: nobody asks for it. */
static uint32_t class_of(const struct places *places, const struct place_question *question,
    struct slice name, bool *ret_others)
{
    uint32_t c = places->hours[question->hour].first_class;
    *ret_others = counted_name_mark(name) == NAME_MARK_OTHER;
    for (; c != INDEX_NONE; c = places->classes[c].next) {
        const struct place_class *class = &places->classes[c];
        if (class->table == question->table &&
            (*ret_others ? counted_name_is_other(name, class->text)
                         : name.n > 0 && slice_equal(counted_name_class(name), class->text))) {
            return c;
        }
    }
    return INDEX_NONE;
}

/* The hour before has the name. */
static bool note_staying(struct places *places, struct place *place, uint64_t hash, uint32_t class)
{
    if (place != NULL && place->was == PLACE_OPEN) {
        place->was = PLACE_STAYS;
        place->since_ms = SINCE_TOO_LATE;
    }
    if (!array_reserve(&places->staying, &places->staying_capacity, places->n_staying,
            sizeof(*places->staying))) {
        return false;
    }
    places->staying[places->n_staying++] = (struct staying_name){hash, class};
    return true;
}

static bool take_name(
    struct places *places, const struct place_question *question, struct slice name)
{
    bool others;
    uint32_t c = class_of(places, question, name, &others);
    const struct secret *secret = atomic_load(&places->core->secret);
    if (c == INDEX_NONE || secret == NULL || name.n > EVENT_PAGE_MAX) {
        return true;
    }
    struct place_class *class = &places->classes[c];
    if (others) {
        class->full_ms = class->full_ms == 0 && !question->before ? FULL_LONG_AGO : class->full_ms;
        return true;
    }
    struct listed is = {places, question->hour, question->table, identity_name(secret, name)};
    if (!index_reserve(&places->listed_index)) {
        return false;
    }
    const struct index_slot *slot =
        index_find(&places->listed_index, listed_hash(&is), same_listed, &is);
    struct place *place = slot->item == INDEX_NONE ? NULL : &places->all[slot->item];
    if (question->before) {
        return note_staying(places, place, is.hash, c);
    }
    class->n_listed++;
    if (place != NULL) {
        place->was = PLACE_HELD;
    }
    return true;
}

bool closed_hours_take(
    struct places *places, const struct place_question *question, const struct reply *reply)
{
    if (reply->type != REPLY_ARRAY) {
        return false;
    }
    for (size_t i = 0; i < reply->n; i++) {
        if (!take_name(places, question, reply->items[i].text)) {
            return false;
        }
    }
    uint32_t c = places->hours[question->hour].first_class;
    for (; c != INDEX_NONE; c = places->classes[c].next) {
        struct place_class *class = &places->classes[c];
        class->n = class->n < class->n_listed ? class->n_listed : class->n;
    }
    return true;
}

/* ---- commands ---- */

static bool is_kept(
    const struct places *places, const struct place_hour *hour, const struct staying_name *name)
{
    const struct place_class *class = &places->classes[name->class];
    return &places->hours[class->hour] == hour && place_class_is_newly_full(class);
}

size_t closed_hours_write(const struct places *places, const struct place_hour *hour,
    const struct key *key, int64_t now_ms, struct buffer *out)
{
    size_t n = 0;
    size_t n_kept = 0;
    size_t left = 0; /* of the command at hand */
    for (size_t i = 0; i < places->n_staying; i++) {
        n_kept += is_kept(places, hour, &places->staying[i]);
    }
    for (size_t i = 0; n_kept > 0; i++) {
        const struct staying_name *name = &places->staying[i];
        if (!is_kept(places, hour, name)) {
            continue;
        }
        if (left == 0) {
            left = n_kept < PLACES_AT_ONCE ? n_kept : PLACES_AT_ONCE;
            resp_head(out, 2 + 2 * left);
            resp_text(out, "HSET");
            resp_word(out, key->p, key->n);
            n++;
        }
        places_write_name(out, places->classes[name->class].table, name->hash);
        resp_decimal(out, now_ms);
        left--;
        n_kept--;
    }
    return n;
}
