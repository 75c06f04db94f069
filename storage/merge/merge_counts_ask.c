/* merge_counts_ask.c - what the counters of old buckets have, asked behind the WATCH. */
#include "storage/base/index.h"
#include "storage/job/name_cap.h"
#include "storage/merge/merge_counts.h"
#include "storage/merge/merge_counts_state.h"
#include "storage/redis/resp.h"

/* So many classes of names are told apart in a bucket.  A bucket with more classes is not asked how
 * many names it has, and whether some were put together: then it counts as full, and as having
 * some.
 */
#define CLASSES_MAX 24

/* ---- questions ---- */

/* Does nobody but a fold or a deletion change the bucket's counters? */
static bool is_settled(
    const struct merge_counts *merge, const struct bucket bucket, const struct rollup_state *state)
{
    return bucket.level == LEVEL_MINUTE ? !merge_is_recent(merge, bucket)
                                        : closed_for_readers(state, bucket);
}

static uint64_t name_cap_of(
    const struct merge_counts *merge, const struct site_bucket *bucket, struct slice name)
{
    return name_cap(merge->config, merge->n_partitions, name, bucket->kind == KEY_VV);
}

/* Find the classes of the bucket's names that have caps.  For a day these are the classes that can
 * have caps, because its names were put together by the caps of that time.  Returns how many
 * classes; CLASSES_MAX + 1: there are too many. */
static uint32_t find_classes(const struct merge_counts *merge, const struct site_bucket *bucket,
    struct slice ret[CLASSES_MAX])
{
    uint32_t n = 0;
    enum level level = bucket->target.bucket.level;
    if (level != LEVEL_HOUR && level != LEVEL_DAY) {
        return 0;
    }
    for (uint32_t p = bucket->pages.first; p != INDEX_NONE; p = merge->pages[p].next) {
        struct slice name = merge->pages[p].page;
        struct slice class = counted_name_class(name);
        uint32_t i = 0;
        while (i < n && !slice_equal(ret[i], class)) {
            i++;
        }
        bool has_cap =
            level == LEVEL_DAY ? name_has_cap(name) : name_cap_of(merge, bucket, name) > 0;
        if (i < n || !has_cap) {
            continue;
        }
        if (n == CLASSES_MAX) {
            return CLASSES_MAX + 1;
        }
        ret[n++] = class;
    }
    return n;
}

/* Ask what the bucket's counters have, and of an hour or a day with caps how many names there are.
 * Returns how many questions these are. */
static size_t write_question(
    struct merge_counts *merge, struct site_bucket *bucket, const char *tag, struct buffer *out)
{
    struct key named;
    struct slice classes[CLASSES_MAX];
    char other[1 + NAME_CLASS_MAX];
    const uint32_t n_classes = find_classes(merge, bucket, classes);
    bucket->has_others = n_classes > CLASSES_MAX; /* too many classes are not asked for */
    bucket->n_others = bucket->has_others ? 0 : n_classes;
    bucket->n_names = INT64_MAX;
    struct slice key = merge_counters_key(&named, tag, bucket);
    resp_begin(out, bucket->target.bucket.level == LEVEL_MINUTE ? "HMGET" : "ZMSCORE", key,
        bucket->pages.n + bucket->n_others);
    for (uint32_t p = bucket->pages.first; p != INDEX_NONE; p = merge->pages[p].next) {
        resp_slice(out, merge->pages[p].page);
    }
    for (uint32_t i = 0; i < bucket->n_others; i++) {
        resp_slice(out, counted_name_of_others(classes[i], other));
    }
    if (bucket->n_others > 0) {
        resp_begin(out, "ZCARD", key, 0);
    }
    return bucket->n_others > 0 ? 2 : 1;
}

static size_t write_asked(struct merge_counts *merge, const char *tag, struct buffer *out)
{
    size_t n = 0;
    merge->next_asked = 0;
    merge->awaits_size = false;
    for (size_t i = 0; i < merge->n_buckets; i++) {
        if (merge->buckets[i].is_asked) {
            n += write_question(merge, &merge->buckets[i], tag, out);
        }
    }
    return n;
}

/* Does @coarser, which is closed, have all that @bucket has?  It must live as long: else it may be
 * gone when the bucket is not, by its expiry, or by a clock that was ahead for a while.  And the
 * zone must be UTC: the past of another zone may change, so that its hours begin at another minute.
 */
static bool is_whole(const struct site_bucket *coarser, const struct site_bucket *bucket)
{
    int64_t coarser_ms = coarser->target.expire_ms;
    int64_t ms = bucket->target.expire_ms;
    return (coarser_ms == 0 || (ms != 0 && ms <= coarser_ms)) && bucket->site->zone == zone_utc();
}

/* The bucket whose counters may tell that @bucket has none of the names: the day of an hour, the
 * hour of a minute.  NULL: there is none. */
static const struct site_bucket *teller_of(
    const struct merge_counts *merge, const struct site_bucket *bucket)
{
    const uint32_t first = bucket->pages.first;
    if (bucket->target.bucket.level >= LEVEL_DAY || first == INDEX_NONE ||
        merge->pages[first].coarser == INDEX_NONE) {
        return NULL;
    }
    const struct site_bucket *coarser =
        &merge->buckets[merge->pages[merge->pages[first].coarser].bucket];
    return coarser->is_settled && is_whole(coarser, bucket) ? coarser : NULL;
}

size_t merge_counts_write_questions(struct merge_counts *merge, const char *tag, int64_t now_ms,
    const struct rollup_state *state, struct buffer *out)
{
    merge->now_ms = now_ms;
    for (size_t i = 0; i < merge->n_buckets; i++) {
        struct site_bucket *bucket = &merge->buckets[i];
        bucket->is_settled =
            is_settled(merge, bucket->target.bucket, state) && !merge_is_over(merge, bucket);
    }
    for (size_t i = 0; i < merge->n_buckets; i++) {
        struct site_bucket *bucket = &merge->buckets[i];
        bucket->is_asked = bucket->is_settled && teller_of(merge, bucket) == NULL;
    }
    return write_asked(merge, tag, out);
}

/* Has @hour room for its new names, by the lowest of their caps, and were no names put together in
 * it?  If no new name has a cap, the hour has room. */
static bool can_take_names(const struct merge_counts *merge, const struct site_bucket *hour)
{
    uint64_t n_new = 0;
    uint64_t cap = UINT64_MAX; /* the lowest cap of a new name */
    for (uint32_t p = hour->pages.first; p != INDEX_NONE; p = merge->pages[p].next) {
        const struct page_count *page = &merge->pages[p];
        uint64_t of_name = name_cap_of(merge, hour, page->page);
        n_new += page->is_new;
        cap = page->is_new && of_name > 0 && of_name < cap ? of_name : cap;
    }
    return cap == UINT64_MAX || (!hour->has_others && (uint64_t)hour->n_names + n_new <= cap);
}

/* What a closed bucket does not have, its parts do not have.  So where all names are new to
 * @teller, they are new to @bucket.  But a day in which a pass has put names together tells nothing
 * of an hour, and the hour must have room: it has no more names than its day.  False: Redis must be
 * asked for @bucket. */
static bool tell_all_new(
    struct merge_counts *merge, struct site_bucket *bucket, const struct site_bucket *teller)
{
    bool is_hour = bucket->target.bucket.level == LEVEL_HOUR;
    bool told = teller->is_told && !(is_hour && teller->has_others);
    for (uint32_t p = bucket->pages.first; told && p != INDEX_NONE; p = merge->pages[p].next) {
        struct page_count *page = &merge->pages[p];
        told = merge->pages[page->coarser].is_new;
        page->is_new = true;
        page->value = page->count;
    }
    bucket->n_names = teller->n_names;
    bucket->is_told = told && (!is_hour || can_take_names(merge, bucket));
    return bucket->is_told;
}

size_t merge_counts_write_rest(
    struct merge_counts *merge, enum level level, const char *tag, struct buffer *out)
{
    for (size_t i = 0; i < merge->n_buckets; i++) {
        struct site_bucket *bucket = &merge->buckets[i];
        const struct site_bucket *teller =
            bucket->target.bucket.level == level && bucket->is_settled ? teller_of(merge, bucket)
                                                                       : NULL;
        bucket->is_asked = teller != NULL && !tell_all_new(merge, bucket, teller);
    }
    return write_asked(merge, tag, out);
}

/* ---- answers ---- */

/* The counter's value, or -1 if it is no whole number: a score of more than 17 digits is none. */
static int64_t value_of(const struct reply *reply)
{
    return reply->type == REPLY_NIL ? 0 : reply_integer(reply, -1);
}

static void take_values(
    struct merge_counts *merge, struct site_bucket *bucket, const struct reply *items)
{
    bucket->is_told = true;
    for (size_t i = 0; i < bucket->pages.n; i++) {
        bucket->is_told = bucket->is_told && value_of(&items[i]) >= 0;
    }
    uint32_t p = bucket->pages.first;
    for (size_t i = 0; i < bucket->pages.n; i++, p = merge->pages[p].next) {
        struct page_count *page = &merge->pages[p];
        page->is_new = items[i].type == REPLY_NIL;
        page->value = bucket->is_told ? (uint64_t)value_of(&items[i]) + page->count : 0;
    }
    for (size_t i = bucket->pages.n; i < bucket->pages.n + bucket->n_others; i++) {
        bucket->has_others = bucket->has_others || items[i].type != REPLY_NIL;
    }
}

bool merge_counts_take(struct merge_counts *merge, const struct reply *reply)
{
    while (merge->next_asked < merge->n_buckets && !merge->buckets[merge->next_asked].is_asked) {
        merge->next_asked++;
    }
    if (merge->next_asked == merge->n_buckets) {
        return false;
    }
    struct site_bucket *bucket = &merge->buckets[merge->next_asked];
    if (merge->awaits_size) {
        merge->awaits_size = false;
        merge->next_asked++;
        bucket->n_names = reply_integer(reply, INT64_MAX);
        return reply->type == REPLY_INTEGER;
    }
    if (reply->type != REPLY_ARRAY || reply->n != bucket->pages.n + bucket->n_others) {
        return false;
    }
    take_values(merge, bucket, reply->items);
    merge->awaits_size = bucket->n_others > 0;
    merge->next_asked += merge->awaits_size ? 0 : 1;
    return true;
}

bool merge_counts_exceeds(const struct merge_counts *merge)
{
    for (size_t i = 0; i < merge->n_buckets; i++) {
        const struct site_bucket *bucket = &merge->buckets[i];
        if (bucket->is_settled && bucket->target.bucket.level == LEVEL_HOUR &&
            !can_take_names(merge, bucket)) {
            return true;
        }
    }
    return false;
}
