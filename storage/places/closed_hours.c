/* closed_hours.c - the places of closed hours, whose counters tell which names they have. */
#include "storage/base/index.h"
#include "storage/job/counted_name.h"
#include "storage/places/places.h"
#include "storage/places/state.h"
#include "storage/redis/resp.h"
#include "storage/time/write_plan.h"

/* The counters tell the names once the hour is closed for readers and has ended more than a day ago
 * (closed_hours_is()).  Until then late events are ordinary, and the hash of the hour tells since
 * when a name has its place, which matters in the next hour.
 *
 * What Redis says of such an hour:
 *
 *     the hour's counters       which names have a place; whether a class is full, because then
 *                               there is the name of others; and how many names there are
 *     those of the hour before  which names get a place all the same, until a class is full.  A
 *                               name that came later to the hour before may have been refused here
 *     the hash of places        for which names of the hour before a place is kept since a class
 *                               is full
 *
 * The counters of an hour hold names of several classes, so their number is not that of one class.
 * While an hour has fewer names than a class may have, that does not matter.  Else the names are
 * listed, as long as the class is not full and new names come.
 */

/* since_ms of a name that has a place in the hour before, by its counters: no place once a class is
 * full.  And of a name for which a place is kept: always a place. */
#define SINCE_TOO_LATE INT64_MAX
#define SINCE_EVER     0

/* full_ms of a class that is full since an unknown time. */
#define FULL_LONG_AGO 1

/* For so many names of the hour before, those with the highest counts, places are kept at most; and
 * for so many names in all hours of a share. */
#define STAYING_MAX       4000
#define STAYING_SHARE_MAX 40000

bool closed_hours_is(const struct places_view *view, struct bucket hour)
{
    int64_t over_ms = expiry_ms(hour.end_s, retention_keep_s(&view->retention, hour));
    return view->known && closed_for_readers(&view->state, hour) &&
           hour.end_s * 1000 + PLACES_KEEP_MS <= view->now_ms &&
           (over_ms == 0 || view->now_ms < over_ms);
}

static const struct place_hour *hour_of(
    const struct places *places, const struct place_question *question)
{
    return &places->hours[question->hour];
}

/* The next class of the question's table behind class @c, or the first one if @c is INDEX_NONE. */
static uint32_t next_class(
    const struct places *places, const struct place_question *question, uint32_t c)
{
    c = c == INDEX_NONE ? hour_of(places, question)->first_class : places->classes[c].next;
    while (c != INDEX_NONE && places->classes[c].table != question->table) {
        c = places->classes[c].next;
    }
    return c;
}

/* The index in places->asked, from @i on, of the next name of the question's table. */
static uint32_t next_name(
    const struct places *places, const struct place_question *question, uint32_t i)
{
    while (i < question->last && places->all[places->asked[i]].table != question->table) {
        i++;
    }
    return i;
}

/* ---- questions ---- */

static void write_counters_key(const struct places *places, const struct place_question *question,
    const char *tag, struct buffer *out)
{
    const struct place_hour *hour = hour_of(places, question);
    bool before = question->asks == ASK_COUNTERS_BEFORE || question->asks == ASK_LIST_BEFORE;
    struct key key;
    resp_slice(out, key_bucket(&key, tag, question->table == PLACES_STARTS ? KEY_VV : KEY_PV,
                        hour->site->name, before ? hour->before : hour->bucket, SLICE("")));
}

/* Write ZMSCORE of the question's names; for the hour itself also of the names of others of their
 * classes. */
static void write_scores(const struct places *places, const struct place_question *question,
    const char *tag, struct buffer *out)
{
    char other[1 + NAME_CLASS_MAX];
    bool others = question->asks == ASK_COUNTERS;
    size_t n = 0;
    uint32_t i = next_name(places, question, question->first);
    for (; i < question->last; i = next_name(places, question, i + 1)) {
        n++;
    }
    uint32_t c = others ? next_class(places, question, INDEX_NONE) : INDEX_NONE;
    for (; c != INDEX_NONE; c = next_class(places, question, c)) {
        n++;
    }
    resp_head(out, 2 + n);
    resp_text(out, "ZMSCORE");
    write_counters_key(places, question, tag, out);
    i = next_name(places, question, question->first);
    for (; i < question->last; i = next_name(places, question, i + 1)) {
        resp_slice(out, places->all[places->asked[i]].name);
    }
    c = others ? next_class(places, question, INDEX_NONE) : INDEX_NONE;
    for (; c != INDEX_NONE; c = next_class(places, question, c)) {
        resp_slice(out, counted_name_of_others(places->classes[c].text, other));
    }
}

static void write_list(const struct places *places, const struct place_question *question,
    const char *tag, struct buffer *out)
{
    bool before = question->asks == ASK_LIST_BEFORE;
    resp_head(out, before ? 5 : 4);
    resp_text(out, "ZRANGE");
    write_counters_key(places, question, tag, out);
    resp_decimal(out, 0);
    resp_decimal(out, before ? STAYING_MAX - 1 : -1);
    if (before) {
        resp_text(out, "REV");
    }
}

/* Write HMGET of the places that are kept for the question's names. */
static void write_kept(const struct places *places, const struct place_question *question,
    const char *tag, struct buffer *out)
{
    const struct place_hour *hour = hour_of(places, question);
    struct key key;
    resp_head(out, 2 + question->last - question->first);
    resp_text(out, "HMGET");
    resp_slice(out, key_places(&key, tag, hour->site->name, hour->bucket));
    for (uint32_t i = question->first; i < question->last; i++) {
        const struct place *place = &places->all[places->asked[i]];
        places_write_name(out, FIELD_KEPT, place->table, place->hash);
    }
}

static bool closed_hours_ask_one(struct places *places, struct place_question question,
    enum place_asks asks, const char *tag, struct buffer *out)
{
    question.asks = asks;
    if (!places_add_question(places, &question)) {
        return false;
    }
    if (asks == ASK_KEPT) {
        write_kept(places, &question, tag, out);
    } else if (asks == ASK_SIZE) {
        resp_head(out, 2);
        resp_text(out, "ZCARD");
        write_counters_key(places, &question, tag, out);
    } else if (asks == ASK_LIST || asks == ASK_LIST_BEFORE) {
        write_list(places, &question, tag, out);
    } else {
        write_scores(places, &question, tag, out);
    }
    return true;
}

bool closed_hours_ask(
    struct places *places, uint32_t first, uint32_t last, const char *tag, struct buffer *out)
{
    uint32_t h = places->classes[places->all[places->asked[first]].class].hour;
    struct place_question question = {.hour = h, .first = first, .last = last};
    bool closed = places->hours[h].is_closed;
    bool before = places->hours[h].before_is_closed;
    bool ok = !closed || closed_hours_ask_one(places, question, ASK_KEPT, tag, out);
    for (int table = PLACES_COUNTS; ok && table <= PLACES_STARTS; table++) {
        question.table = (enum places_table)table;
        if (next_name(places, &question, first) == last) {
            continue;
        }
        ok = (!closed || (closed_hours_ask_one(places, question, ASK_COUNTERS, tag, out) &&
                             closed_hours_ask_one(places, question, ASK_SIZE, tag, out))) &&
             (!before || closed_hours_ask_one(places, question, ASK_COUNTERS_BEFORE, tag, out));
    }
    return ok;
}

/* May class @c become full, by what is known of how many names it has? */
static bool may_fill(const struct places *places, uint32_t c)
{
    const struct place_class *class = &places->classes[c];
    uint64_t n_new = 0;
    uint32_t i = places->hours[class->hour].places.first;
    for (; class->full_ms == 0 && i != INDEX_NONE; i = places->all[i].next) {
        n_new += places->all[i].class == c && places->all[i].was != PLACE_HELD;
    }
    return n_new > 0 && class->n + n_new > class->cap;
}

/* Must the names of the question's table be counted class by class? */
static bool needs_list(const struct places *places, const struct place_question *question)
{
    uint32_t c = next_class(places, question, INDEX_NONE);
    while (c != INDEX_NONE && !may_fill(places, c)) {
        c = next_class(places, question, c);
    }
    return c != INDEX_NONE;
}

bool closed_hours_ask_lists(struct places *places, const char *tag, struct buffer *out)
{
    bool ok = true;
    for (uint32_t h = 0; ok && h < places->n_hours; h++) {
        for (int table = PLACES_COUNTS; ok && table <= PLACES_STARTS; table++) {
            struct place_question question = {.hour = h, .table = (enum places_table)table};
            if (places->hours[h].is_closed && needs_list(places, &question)) {
                ok = closed_hours_ask_one(places, question, ASK_LIST, tag, out) &&
                     (!places->hours[h].before_is_closed ||
                         closed_hours_ask_one(places, question, ASK_LIST_BEFORE, tag, out));
            }
        }
    }
    return ok;
}

/* ---- answers ---- */

/* Take which names have a place that is kept.  False: the answer has another shape. */
static bool take_kept(
    struct places *places, const struct place_question *question, const struct reply *reply)
{
    if (reply->n != question->last - question->first) {
        return false;
    }
    for (uint32_t i = question->first; i < question->last; i++) {
        struct place *place = &places->all[places->asked[i]];
        if (reply->items[i - question->first].type == REPLY_TEXT && place->was != PLACE_HELD) {
            place->was = PLACE_STAYS;
            place->since_ms = SINCE_EVER;
        }
    }
    return true;
}

/* The counters of the hour, or with @before of the hour before, have the name of @place. */
static void note_counted(struct place *place, bool before)
{
    if (!before) {
        place->was = PLACE_HELD;
    } else if (place->was == PLACE_OPEN) {
        place->was = PLACE_STAYS;
        place->since_ms = SINCE_TOO_LATE;
    }
}

/* Take which names, and which names of others, the counters have.  False: the answer has another
 * shape. */
static bool take_scores(
    struct places *places, const struct place_question *question, const struct reply *reply)
{
    size_t at = 0;
    bool before = question->asks == ASK_COUNTERS_BEFORE;
    uint32_t i = next_name(places, question, question->first);
    for (; i < question->last && at < reply->n; i = next_name(places, question, i + 1)) {
        if (reply->items[at++].type != REPLY_NIL) {
            note_counted(&places->all[places->asked[i]], before);
        }
    }
    uint32_t c = before ? INDEX_NONE : next_class(places, question, INDEX_NONE);
    for (; c != INDEX_NONE && at < reply->n; c = next_class(places, question, c)) {
        struct place_class *class = &places->classes[c];
        if (reply->items[at++].type != REPLY_NIL && class->full_ms == 0) {
            class->full_ms = FULL_LONG_AGO;
        }
    }
    return i == question->last && c == INDEX_NONE && at == reply->n;
}

static void take_size(struct places *places, const struct place_question *question, uint64_t n)
{
    uint32_t c = next_class(places, question, INDEX_NONE);
    for (; c != INDEX_NONE; c = next_class(places, question, c)) {
        places->classes[c].n = n;
    }
}

/* The class of a name in a list.  INDEX_NONE: the name has no cap, or the class is not asked
 * for. */
static uint32_t class_of(
    const struct places *places, const struct place_question *question, struct slice name)
{
    if (places_cap_of(places, name, question->table) == 0) {
        return INDEX_NONE;
    }
    struct slice class = counted_name_class(name);
    uint32_t c = next_class(places, question, INDEX_NONE);
    while (c != INDEX_NONE && !slice_equal(places->classes[c].text, class)) {
        c = next_class(places, question, c);
    }
    return c;
}

static void take_list(
    struct places *places, const struct place_question *question, const struct reply *reply)
{
    take_size(places, question, 0);
    for (size_t i = 0; i < reply->n; i++) {
        uint32_t c = class_of(places, question, reply->items[i].text);
        if (c != INDEX_NONE) {
            places->classes[c].n++;
        }
    }
}

/* Note which names of the hour before may stay.  The list of the hour itself must have been taken
 * before, for may_fill().  False: out of memory. */
static bool take_list_before(
    struct places *places, const struct place_question *question, const struct reply *reply)
{
    const struct secret *secret = atomic_load(&places->core->secret);
    struct place_hour *hour = &places->hours[question->hour];
    uint32_t known = INDEX_NONE; /* the class of the last name */
    bool fills = false;          /* may that class become full? */
    if (hour->end_staying == 0) {
        hour->first_staying = places->n_staying;
    }
    size_t n = secret == NULL ? 0 : reply->n;
    for (size_t i = 0; i < n && places->n_staying < STAYING_SHARE_MAX; i++) {
        struct slice name = reply->items[i].text;
        uint32_t c = class_of(places, question, name);
        if (c != known) {
            known = c;
            fills = c != INDEX_NONE && may_fill(places, c);
        }
        if (!fills || name.n > EVENT_PAGE_MAX) {
            continue;
        }
        if (!ARRAY_RESERVE(places, staying)) {
            return false;
        }
        places->staying[places->n_staying++] =
            (struct staying_name){identity_name(secret, name), c};
    }
    hour->end_staying = places->n_staying;
    return true;
}

bool closed_hours_take(
    struct places *places, const struct place_question *question, const struct reply *reply)
{
    if (question->asks == ASK_SIZE) {
        take_size(places, question, (uint64_t)reply_integer(reply, 0));
        return reply->type == REPLY_INTEGER;
    }
    if (reply->type != REPLY_ARRAY) {
        return false;
    }
    if (question->asks == ASK_KEPT) {
        return take_kept(places, question, reply);
    }
    if (question->asks == ASK_LIST) {
        take_list(places, question, reply);
        return true;
    }
    return question->asks == ASK_LIST_BEFORE ? take_list_before(places, question, reply)
                                             : take_scores(places, question, reply);
}

/* ---- commands ---- */

size_t closed_hours_write(const struct places *places, const struct place_hour *hour,
    const struct key *key, int64_t now_ms, struct buffer *out)
{
    size_t n = 0;
    size_t n_kept = 0;
    size_t left = 0; /* names that the command at hand still needs */
    for (size_t i = hour->first_staying; i < hour->end_staying; i++) {
        n_kept += place_class_is_newly_full(&places->classes[places->staying[i].class]);
    }
    for (size_t i = hour->first_staying; n_kept > 0; i++) {
        const struct staying_name *name = &places->staying[i];
        const struct place_class *class = &places->classes[name->class];
        if (!place_class_is_newly_full(class)) {
            continue;
        }
        if (left == 0) {
            left = n_kept < PLACES_AT_ONCE ? n_kept : PLACES_AT_ONCE;
            resp_head(out, 2 + 2 * left);
            resp_text(out, "HSET");
            resp_word(out, key->p, key->n);
            n++;
        }
        places_write_name(out, FIELD_KEPT, class->table, name->hash);
        resp_decimal(out, now_ms);
        left--;
        n_kept--;
    }
    return n;
}
