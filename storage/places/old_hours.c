/* old_hours.c - the places of hours that are long over: the hash of a month has a field for each.
 *
 * An import writes to one hour after the other, with a few names in each, and hardly ever comes
 * back.  A hash an hour, with an expiry, would cost Redis as much as what is counted.  So what the
 * hash of an hour would have is one value, of records:
 *
 *     +------+----------------+----------------+
 *     | kind | id             | number         |     numbers are little endian
 *     +------+----------------+----------------+
 *      0      1                9               17
 *
 *     kind                          id                     number
 *     n   a name that has a place   keyed hash of it       since when, ms
 *     c   a class                   hash of it             how many of its names have one
 *     f   a class                   hash of it             since when some have none, ms
 *     N, C, F: the same of visits that begin
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "storage/places/places.h"
#include "storage/places/state.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

#define KEEP_MS        ((int64_t)15 * 60 * 1000) /* while the import goes on */
#define RECORD         17
#define RECORDS_KEPT   ((size_t)64 * 1024)
#define FIELDS_AT_ONCE 500 /* in a command */

enum record_kind { RECORD_NAME = 'n', RECORD_CLASS = 'c', RECORD_FULL = 'f' };
#define RECORD_STARTS ('n' - 'N') /* taken away from the kind, for visits that begin */

struct record {
    enum record_kind kind;
    enum places_table table;
    uint64_t id, number;
};

static struct record record_read(const char *p)
{
    struct record record;
    bool starts = *p < 'a';
    record.kind = (enum record_kind)(*p + (starts ? RECORD_STARTS : 0));
    record.table = starts ? PLACES_STARTS : PLACES_COUNTS;
    memcpy(&record.id, p + 1, sizeof(record.id));
    memcpy(&record.number, p + 9, sizeof(record.number));
    record.id = le64toh(record.id);
    record.number = le64toh(record.number);
    return record;
}

static void record_write(struct buffer *out, enum record_kind kind, enum places_table table,
    uint64_t id, uint64_t number)
{
    char *p = buffer_grow(out, RECORD);
    if (p != NULL) {
        id = htole64(id);
        number = htole64(number);
        *p = (char)((int)kind - (table == PLACES_STARTS ? RECORD_STARTS : 0));
        memcpy(p + 1, &id, sizeof(id));
        memcpy(p + 9, &number, sizeof(number));
    }
}

static uint64_t class_id(const struct place_class *class)
{
    return XXH3_64bits(class->text.p, class->text.n);
}

void old_hours_begin(struct places *places)
{
    array_relax(&places->old_questions, &places->old_questions_capacity, places->n_old_questions,
        sizeof(*places->old_questions));
    places->n_old_questions = places->n_old_answered = 0;
    index_clear(&places->old_index);
    buffer_clear(&places->records, RECORDS_KEPT);
}

void old_hours_release(struct places *places)
{
    free(places->old_questions);
    index_release(&places->old_index);
    buffer_release(&places->records);
}

void old_hour_init(struct place_hour *hour, const struct zone *zone)
{
    hour->month = bucket_at(zone, LEVEL_MONTH, hour->bucket.start_s);
    hour->month_before = bucket_at(zone, LEVEL_MONTH, hour->before.start_s);
}

/* ---- names by their hashes ---- */

struct hash_wanted {
    const struct places *places;
    uint64_t hash;
    uint32_t hour;
    enum places_table table;
};

static bool has_hash(const void *context, uint32_t item)
{
    const struct hash_wanted *w = context;
    const struct place *place = &w->places->all[item];
    return place->hash == w->hash && place->table == w->table &&
           w->places->classes[place->class].hour == w->hour;
}

static uint64_t index_hash(const struct hash_wanted *w)
{
    return (w->hash ^ (w->hour * 2u + (unsigned)w->table)) * UINT64_C(0x9e3779b97f4a7c15);
}

bool old_hours_ask(struct places *places, uint32_t item)
{
    const struct place *place = &places->all[item];
    struct hash_wanted wanted = {
        places, place->hash, places->classes[place->class].hour, place->table};
    if (!index_reserve(&places->old_index)) {
        return false;
    }
    uint64_t hash = index_hash(&wanted);
    struct index_slot *slot = index_find(&places->old_index, hash, has_hash, &wanted);
    if (slot->item == INDEX_NONE) {
        index_set(&places->old_index, slot, hash, item);
    }
    return true;
}

/* ---- questions ---- */

static const struct place_hour *hour_of(const struct places *places, const struct old_question *q)
{
    return &places->hours[q->hour];
}

static struct bucket month_of(const struct places *places, const struct old_question *q)
{
    const struct place_hour *hour = hour_of(places, q);
    return q->before ? hour->month_before : hour->month;
}

/* Are the hours of two questions in one hash? */
static bool same_hash(
    const struct places *places, const struct old_question *a, const struct old_question *b)
{
    return month_of(places, a).start_s == month_of(places, b).start_s &&
           slice_equal(hour_of(places, a)->site, hour_of(places, b)->site);
}

static void write_field(struct buffer *out, struct bucket hour)
{
    uint32_t minute = htobe32((uint32_t)(hour.start_s / 60));
    resp_word(out, &minute, sizeof(minute));
}

/* Has the hour a name that is not known to have a place? */
static bool is_asked(const struct places *places, const struct place_hour *hour)
{
    uint32_t i = hour->first_place;
    while (i != INDEX_NONE && places->all[i].was == PLACE_HELD) {
        i = places->all[i].next;
    }
    return i != INDEX_NONE;
}

/* Ask for such an hour, and for the hour before it.  False: out of memory. */
static bool choose_questions(struct places *places)
{
    for (size_t i = 0; i < places->n_hours; i++) {
        const struct place_hour *hour = &places->hours[i];
        for (int before = 0; before < 2 && hour->is_old && is_asked(places, hour); before++) {
            if (!array_reserve(&places->old_questions, &places->old_questions_capacity,
                    places->n_old_questions, sizeof(*places->old_questions))) {
                return false;
            }
            places->old_questions[places->n_old_questions++] =
                (struct old_question){.hour = (uint32_t)i, .before = before == 1};
        }
    }
    return true;
}

/* One command for the questions [first, end), which go to one hash. */
static void write_command(
    const struct places *places, size_t first, size_t end, const char *tag, struct buffer *out)
{
    const struct old_question *q = &places->old_questions[first];
    struct key key;
    key_places(&key, tag, hour_of(places, q)->site, month_of(places, q));
    resp_head(out, 2 + end - first);
    resp_text(out, "HMGET");
    resp_word(out, key.p, key.n);
    for (; first < end; first++) {
        q = &places->old_questions[first];
        write_field(out, q->before ? hour_of(places, q)->before : hour_of(places, q)->bucket);
    }
}

size_t old_hours_write_questions(struct places *places, const char *tag, struct buffer *out)
{
    size_t n_commands = 0;
    bool ok = choose_questions(places);
    const struct old_question *all = places->old_questions;
    for (size_t first = 0, end = 0; first < places->n_old_questions; first = end, n_commands++) {
        while (end < places->n_old_questions && end - first < FIELDS_AT_ONCE &&
               same_hash(places, &all[first], &all[end])) {
            end++;
        }
        write_command(places, first, end, tag, out);
    }
    out->failed = out->failed || !ok;
    return n_commands;
}

/* ---- answers ---- */

static void take_name(
    struct places *places, const struct old_question *q, const struct record *record)
{
    struct hash_wanted wanted = {places, record->id, q->hour, record->table};
    uint32_t item = index_find(&places->old_index, index_hash(&wanted), has_hash, &wanted)->item;
    if (item != INDEX_NONE && places->all[item].was != PLACE_HELD) {
        places->all[item].was = q->before ? PLACE_STAYS : PLACE_HELD;
        places->all[item].since_ms = (int64_t)record->number;
    }
}

/* The class of the hour that the record is of; NULL: none of its names came. */
static struct place_class *class_of(
    const struct places *places, const struct place_hour *hour, const struct record *record)
{
    uint32_t c = hour->first_class;
    for (; c != INDEX_NONE; c = places->classes[c].next) {
        struct place_class *class = &places->classes[c];
        if (class->table == record->table && class_id(class) == record->id) {
            return class;
        }
    }
    return NULL;
}

static void take_records(struct places *places, const struct old_question *q, struct slice value)
{
    struct place_hour *hour = &places->hours[q->hour];
    for (size_t at = 0; at + RECORD <= value.n; at += RECORD) {
        struct record record = record_read(value.p + at);
        if (record.kind == RECORD_NAME) {
            take_name(places, q, &record);
            continue;
        }
        struct place_class *class = q->before ? NULL : class_of(places, hour, &record);
        if (class != NULL && record.kind == RECORD_CLASS) {
            class->n = record.number;
        } else if (class != NULL) {
            class->full_ms = (int64_t)record.number;
        }
    }
    if (!q->before) {
        hour->records_at = places->records.n;
        hour->n_records = value.n / RECORD;
        buffer_append(&places->records, value.p, hour->n_records * RECORD);
    }
}

bool old_hours_take(struct places *places, const struct reply *reply)
{
    size_t at = places->n_old_answered;
    if (reply->type != REPLY_ARRAY || reply->n > places->n_old_questions - at) {
        return false;
    }
    places->n_old_answered += reply->n;
    for (size_t i = 0; i < reply->n; i++) {
        if (reply->items[i].type == REPLY_TEXT) {
            take_records(places, &places->old_questions[at + i], reply->items[i].text);
        }
    }
    return !places->records.failed;
}

/* ---- commands ---- */

/* The records of @hour from now on: those that were read, but for the classes that came again.. */
static void write_old_records(
    const struct places *places, const struct place_hour *hour, struct buffer *out)
{
    const char *p = places->records.p + hour->records_at;
    for (size_t i = 0; i < hour->n_records; i++, p += RECORD) {
        struct record record = record_read(p);
        if (record.kind == RECORD_NAME || class_of(places, hour, &record) == NULL) {
            buffer_append(out, p, RECORD);
        }
    }
}

/* ..these classes, and the names that are new. */
static void write_new_records(
    const struct places *places, const struct place_hour *hour, int64_t now_ms, struct buffer *out)
{
    for (uint32_t c = hour->first_class; c != INDEX_NONE; c = places->classes[c].next) {
        const struct place_class *class = &places->classes[c];
        int64_t full_ms = place_class_is_newly_full(class) ? now_ms : class->full_ms;
        uint64_t id = class_id(class);
        record_write(out, RECORD_CLASS, class->table, id, class->n + class->added);
        if (full_ms != 0) {
            record_write(out, RECORD_FULL, class->table, id, (uint64_t)full_ms);
        }
    }
    for (uint32_t i = hour->first_place; i != INDEX_NONE; i = places->all[i].next) {
        const struct place *place = &places->all[i];
        if (place->is_new) {
            record_write(out, RECORD_NAME, place->table, place->hash, (uint64_t)now_ms);
        }
    }
}

/* The hours of one hash that have changed, as fields and values. */
struct old_writer {
    const char *tag;
    struct buffer *out;
    const struct place_hour *hour; /* the first one; NULL: none */
    struct buffer words, value;
    size_t n_fields, n_commands;
};

static void end_hash(struct old_writer *w)
{
    struct key key;
    if (w->hour == NULL) {
        return;
    }
    key_places(&key, w->tag, w->hour->site, w->hour->month);
    resp_head(w->out, 2 + 2 * w->n_fields);
    resp_text(w->out, "HSET");
    resp_word(w->out, key.p, key.n);
    buffer_append(w->out, w->words.p, w->words.n);
    resp_head(w->out, 3);
    resp_text(w->out, "PEXPIRE");
    resp_word(w->out, key.p, key.n);
    resp_decimal(w->out, KEEP_MS);
    w->out->failed = w->out->failed || w->words.failed || w->value.failed;
    buffer_clear(&w->words, SIZE_MAX);
    w->hour = NULL;
    w->n_fields = 0;
    w->n_commands += 2;
}

static void write_hour(struct old_writer *w, const struct places *places,
    const struct place_hour *hour, int64_t now_ms)
{
    if (w->hour != NULL &&
        (w->n_fields == FIELDS_AT_ONCE || w->hour->month.start_s != hour->month.start_s ||
            !slice_equal(w->hour->site, hour->site))) {
        end_hash(w);
    }
    w->hour = w->hour == NULL ? hour : w->hour;
    buffer_clear(&w->value, SIZE_MAX);
    write_old_records(places, hour, &w->value);
    write_new_records(places, hour, now_ms, &w->value);
    write_field(&w->words, hour->bucket);
    resp_word(&w->words, w->value.p, w->value.n);
    w->n_fields++;
}

size_t old_hours_write(
    const struct places *places, const char *tag, int64_t now_ms, struct buffer *out)
{
    struct old_writer w = {.tag = tag, .out = out};
    buffer_init(&w.words);
    buffer_init(&w.value);
    for (size_t i = 0; i < places->n_hours; i++) {
        const struct place_hour *hour = &places->hours[i];
        size_t n_changed;
        (void)places_new_of_hour(places, hour, &n_changed);
        if (hour->is_old && n_changed > 0) {
            write_hour(&w, places, hour, now_ms);
        }
    }
    end_hash(&w);
    buffer_release(&w.words);
    buffer_release(&w.value);
    return w.n_commands;
}
