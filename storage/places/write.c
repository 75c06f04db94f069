/* write.c - what Redis is asked about the places of names, and what it is told. */
#include "storage/places/places.h"

#include "storage/base/index.h"
#include "storage/job/counted_name.h"
#include "storage/places/state.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

/* ---- questions ---- */

/* Places are kept so much longer than PLACES_KEEP_MS.  The places of an hour that is long over are
 * kept so long behind the last name that comes to the hour. */
#define KEEP_LATE_MS (INT64_C(900) * 1000)

#define CLASS_FIELDS 2 /* fields of a class */

static uint32_t hour_of(const struct places *places, uint32_t item)
{
    return places->classes[places->all[item].class].hour;
}

/* Choose the names that Redis must be asked for, hour by hour.  False: out of memory. */
static bool choose_asked(struct places *places)
{
    for (size_t hour = 0; hour < places->n_hours; hour++) {
        uint32_t i = places->hours[hour].places.first;
        for (; i != INDEX_NONE; i = places->all[i].next) {
            if (places->all[i].was == PLACE_HELD) {
                continue;
            }
            if (!ARRAY_RESERVE(places, asked)) {
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

void places_write_name(struct buffer *out, char mark, enum places_table table, uint64_t hash)
{
    write_field(out, mark, table, (struct slice){(const char *)&hash, sizeof(hash)});
}

static void write_name(struct buffer *out, const struct place *place)
{
    places_write_name(out, FIELD_NAME, place->table, place->hash);
}

bool places_add_question(struct places *places, const struct place_question *question)
{
    if (!ARRAY_RESERVE(places, questions)) {
        return false;
    }
    places->questions[places->n_questions++] = *question;
    return true;
}

/* The first of the classes that the question is about; INDEX_NONE: there is none. */
static uint32_t first_class(const struct places *places, const struct place_question *question)
{
    return question->asks == ASK_BEFORE ? INDEX_NONE : places->hours[question->hour].first_class;
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
    resp_head(out, n);
    resp_text(out, "HMGET");
    resp_slice(out, key_places(&key, tag, hour->site->name,
                        question->asks == ASK_BEFORE ? hour->before : hour->bucket));
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
    for (enum place_asks asks = ASK_HASH; asks <= ASK_BEFORE; asks++) {
        const struct place_question question = {.asks = asks,
            .hour = hour_of(places, places->asked[first]),
            .first = first,
            .last = last};
        if (!places_add_question(places, &question)) {
            return false;
        }
        write_question(places, &question, tag, out);
    }
    return closed_hours_ask(places, first, last, tag, out);
}

size_t places_write_questions(struct places *places, const char *tag, struct buffer *out)
{
    bool ok = choose_asked(places);
    for (uint32_t first = 0; ok && first < places->n_asked;) {
        uint32_t last = first;
        while (last < places->n_asked && last - first < PLACES_AT_ONCE &&
               hour_of(places, places->asked[last]) == hour_of(places, places->asked[first])) {
            last++;
        }
        ok = ask_some(places, first, last, tag, out);
        first = last;
    }
    out->failed = out->failed || !ok;
    places->n_first_questions = places->n_questions;
    return places->n_questions;
}

size_t places_write_more(struct places *places, const char *tag, struct buffer *out)
{
    bool ok = closed_hours_ask_lists(places, tag, out);
    out->failed = out->failed || !ok;
    return places->n_questions - places->n_first_questions;
}

bool places_take_more(struct places *places, size_t i, const struct reply *reply)
{
    return places_take(places, places->n_first_questions + i, reply);
}

/* Take what the hash has of a class.  For a closed hour the counters tell how many names there are,
 * and may have told that before the hash is asked for further names. */
static void take_class(
    struct place_class *class, bool is_closed, const struct reply fields[CLASS_FIELDS])
{
    int64_t n = reply_integer(&fields[0], 0);
    int64_t full_ms = reply_integer(&fields[1], 0);
    if (!is_closed) {
        class->n = n > 0 ? (uint64_t)n : 0;
    }
    class->full_ms = full_ms != 0 ? full_ms : class->full_ms;
}

bool places_take(struct places *places, size_t i, const struct reply *reply)
{
    const struct place_question *question = &places->questions[i];
    size_t at = 0;
    if (question->asks > ASK_BEFORE) {
        return closed_hours_take(places, question, reply);
    }
    if (reply->type != REPLY_ARRAY) {
        return false;
    }
    uint32_t c = first_class(places, question);
    for (; c != INDEX_NONE && at + CLASS_FIELDS <= reply->n; c = places->classes[c].next) {
        const struct reply *fields = &reply->items[at];
        take_class(&places->classes[c], places->hours[question->hour].is_closed, fields);
        at += CLASS_FIELDS;
    }
    if (c != INDEX_NONE || reply->n - at != question->last - question->first) {
        return false;
    }
    for (uint32_t k = question->first; k < question->last; k++) {
        struct place *place = &places->all[places->asked[k]];
        const struct reply *since = &reply->items[at++];
        if (since->type == REPLY_TEXT && place->was != PLACE_HELD) {
            place->was = question->asks == ASK_BEFORE ? PLACE_STAYS : PLACE_HELD;
            place->since_ms = reply_integer(since, 0);
        }
    }
    return true;
}

/* ---- commands ---- */

/* How many names of the hour got a place that must be noted in the hash; *ret_fields is how many
 * fields of its classes must be noted.  Names of a closed hour are not noted, because its counters
 * will have them. */
static size_t new_of_hour(
    const struct places *places, const struct place_hour *hour, size_t *ret_fields)
{
    size_t n = 0;
    *ret_fields = 0;
    for (uint32_t c = hour->first_class; c != INDEX_NONE; c = places->classes[c].next) {
        size_t added = hour->is_closed ? 0 : places->classes[c].added;
        n += added;
        *ret_fields += added > 0;
        *ret_fields += place_class_is_newly_full(&places->classes[c]);
    }
    return n;
}

static void write_class(const struct place_hour *hour, const struct place_class *class,
    int64_t now_ms, struct buffer *out)
{
    if (class->added > 0 && !hour->is_closed) {
        write_field(out, FIELD_CLASS, class->table, class->text);
        resp_decimal(out, (int64_t)(class->n + class->added));
    }
    if (place_class_is_newly_full(class)) {
        write_field(out, FIELD_FULL, class->table, class->text);
        resp_decimal(out, now_ms);
    }
}

/* Write HSET commands for the @n_new new places, some at a time, and in the first command the
 * @n_fields fields of the classes.  Returns how many commands there are. */
static size_t write_places(const struct places *places, const struct place_hour *hour,
    const struct key *key, size_t n_new, size_t n_fields, int64_t now_ms, struct buffer *out)
{
    size_t n = 0;
    for (uint32_t i = hour->places.first; n_new > 0 || n_fields > 0; n++) {
        size_t now = n_new < PLACES_AT_ONCE ? n_new : PLACES_AT_ONCE;
        resp_head(out, 2 + 2 * (now + n_fields));
        resp_text(out, "HSET");
        resp_word(out, key->p, key->n);
        uint32_t c = n_fields > 0 ? hour->first_class : INDEX_NONE;
        for (; c != INDEX_NONE; c = places->classes[c].next) {
            write_class(hour, &places->classes[c], now_ms, out);
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
        /* Kept until the counters tell the names, and a share that saw them not do so has ended. */
        int64_t last_ms = hour->bucket.end_s * 1000 + PLACES_KEEP_MS;
        key_places(&key, tag, hour->site->name, hour->bucket);
        n += write_places(places, hour, &key, n_new, n_fields, now_ms, out);
        n += closed_hours_write(places, hour, &key, now_ms, out);
        resp_head(out, 3);
        resp_text(out, "PEXPIREAT");
        resp_word(out, key.p, key.n);
        resp_decimal(out, (last_ms > now_ms ? last_ms : now_ms) + KEEP_LATE_MS);
        n++;
    }
    return n;
}
