/* merge_counts_ask.c - what the counters of old buckets have, asked behind the WATCH. */
#include "storage/base/index.h"
#include "storage/job/name_cap.h"
#include "storage/merge/merge_counts.h"
#include "storage/merge/merge_counts_state.h"
#include "storage/redis/resp.h"

/* Classes of names that are told apart in a bucket.  More is taken for too many names. */
#define CLASSES_MAX 24

/* ---- questions ---- */

/* Does nobody but a fold or a deletion change the bucket's counters? */
static bool is_settled(
    const struct merge_counts *merge, const struct bucket bucket, const struct rollup_state *state)
{
    return bucket.level == LEVEL_MINUTE ? !merge_is_recent(merge, bucket)
                                        : closed_for_readers(state, bucket);
}

static bool is_capped(const struct merge_counts *merge, struct slice name)
{
    return name_cap(merge->caps->config, merge->caps->n_partitions, name, merge->kind == KEY_VV) >
           0;
}

/* The classes of the hour's names that have caps.  Returns how many; with more than CLASSES_MAX the
 * hour exceeds. */
static uint32_t find_classes(
    struct merge_counts *merge, const struct site_bucket *bucket, struct slice ret[CLASSES_MAX])
{
    uint32_t n = 0;
    if (merge->caps == NULL || bucket->target.bucket.level != LEVEL_HOUR) {
        return 0;
    }
    for (uint32_t p = bucket->first_page; p != INDEX_NONE; p = merge->pages[p].next) {
        struct slice name = merge->pages[p].page;
        if (!is_capped(merge, name)) {
            continue;
        }
        struct slice class = counted_name_class(name);
        uint32_t i = 0;
        while (i < n && !slice_equal(ret[i], class)) {
            i++;
        }
        if (i == CLASSES_MAX) {
            merge->exceeds = true;
            return n;
        }
        ret[i] = class;
        n = i == n ? n + 1 : n;
    }
    return n;
}

/* Returns how many questions: what the bucket has, and of an hour with caps how many names. */
static size_t write_question(
    struct merge_counts *merge, struct site_bucket *bucket, const char *tag, struct buffer *out)
{
    struct key key;
    struct slice classes[CLASSES_MAX];
    char other[1 + NAME_CLASS_MAX];
    bucket->n_others = find_classes(merge, bucket, classes);
    merge_counters_key(&key, tag, merge, bucket);
    resp_head(out, 2 + bucket->n_pages + bucket->n_others);
    resp_text(out, bucket->target.bucket.level == LEVEL_MINUTE ? "HMGET" : "ZMSCORE");
    resp_word(out, key.p, key.n);
    for (uint32_t p = bucket->first_page; p != INDEX_NONE; p = merge->pages[p].next) {
        resp_word(out, merge->pages[p].page.p, merge->pages[p].page.n);
    }
    for (uint32_t i = 0; i < bucket->n_others; i++) {
        struct slice name = counted_name_of_others(classes[i], other);
        resp_word(out, name.p, name.n);
    }
    if (bucket->n_others > 0) {
        resp_head(out, 2);
        resp_text(out, "ZCARD");
        resp_word(out, key.p, key.n);
    }
    return bucket->n_others > 0 ? 2 : 1;
}

size_t merge_counts_write_questions(struct merge_counts *merge, const char *tag, int64_t now_ms,
    const struct rollup_state *state, const struct merge_caps *caps, struct buffer *out)
{
    size_t n = 0;
    merge->now_ms = now_ms;
    merge->caps = caps;
    merge->next_asked = 0;
    merge->awaits_size = merge->exceeds = false;
    for (size_t i = 0; i < merge->n_buckets; i++) {
        struct site_bucket *bucket = &merge->buckets[i];
        bucket->is_settled =
            is_settled(merge, bucket->target.bucket, state) && !merge_is_over(merge, bucket);
        bucket->is_asked = bucket->is_settled && bucket->target.bucket.level != LEVEL_MINUTE;
        if (bucket->is_asked) {
            n += write_question(merge, bucket, tag, out);
        }
    }
    return n;
}

/* Has the hour all that its minutes have?  It must live as long as they do: it would else be gone
 * when they are not, by its expiry, or by a clock that was ahead for a while.  And the past of a
 * zone may change, so that its hours begin at another minute: that of UTC does not. */
static bool is_whole(const struct site_bucket *hour, const struct site_bucket *minute)
{
    int64_t hour_ms = hour->target.expire_ms;
    int64_t minute_ms = minute->target.expire_ms;
    return (hour_ms == 0 || (minute_ms != 0 && minute_ms <= hour_ms)) && hour->is_utc;
}

/* Is the name of a minute new to the hour, and so to the minute? */
static bool is_new_to_hour(const struct merge_counts *merge, const struct page_count *page)
{
    if (page->coarser == INDEX_NONE) {
        return false;
    }
    const struct page_count *of_hour = &merge->pages[page->coarser];
    const struct site_bucket *hour = &merge->buckets[of_hour->bucket];
    return hour->is_told && of_hour->is_new && is_whole(hour, &merge->buckets[page->bucket]);
}

/* Are all names of the minute new?  Then their counters are those of the fold. */
static bool is_told_by_hour(struct merge_counts *merge, struct site_bucket *minute)
{
    for (uint32_t p = minute->first_page; p != INDEX_NONE; p = merge->pages[p].next) {
        if (!is_new_to_hour(merge, &merge->pages[p])) {
            return false;
        }
    }
    for (uint32_t p = minute->first_page; p != INDEX_NONE; p = merge->pages[p].next) {
        merge->pages[p].is_new = true;
        merge->pages[p].value = merge->pages[p].count;
    }
    return true;
}

size_t merge_counts_write_minute_questions(
    struct merge_counts *merge, const char *tag, struct buffer *out)
{
    size_t n = 0;
    merge->next_asked = 0;
    for (size_t i = 0; i < merge->n_buckets; i++) {
        struct site_bucket *bucket = &merge->buckets[i];
        bucket->is_asked = false;
        if (!bucket->is_settled || bucket->target.bucket.level != LEVEL_MINUTE) {
            continue;
        }
        if (is_told_by_hour(merge, bucket)) {
            bucket->is_told = true;
        } else {
            bucket->is_asked = true;
            n += write_question(merge, bucket, tag, out);
        }
    }
    return n;
}

/* ---- answers ---- */

/* What the counter has, or -1 for what is no whole number: a score of more than 17 digits. */
static int64_t value_of(const struct reply *reply)
{
    return reply->type == REPLY_NIL ? 0 : reply_integer(reply, -1);
}

static void take_values(
    struct merge_counts *merge, struct site_bucket *bucket, const struct reply *items)
{
    bucket->is_told = true;
    for (size_t i = 0; i < bucket->n_pages; i++) {
        bucket->is_told = bucket->is_told && value_of(&items[i]) >= 0;
    }
    uint32_t p = bucket->first_page;
    for (size_t i = 0; i < bucket->n_pages; i++, p = merge->pages[p].next) {
        struct page_count *page = &merge->pages[p];
        page->is_new = items[i].type == REPLY_NIL;
        page->value = bucket->is_told ? (uint64_t)value_of(&items[i]) + page->count : 0;
    }
}

/* The hour has @n names.  It can take the new ones of a class if that many are allowed in all, and
 * if none was put together before. */
static void take_size(struct merge_counts *merge, const struct site_bucket *bucket, int64_t n)
{
    uint64_t n_new = 0;
    uint64_t cap = UINT64_MAX; /* the least of a name that is new */
    for (uint32_t p = bucket->first_page; p != INDEX_NONE; p = merge->pages[p].next) {
        const struct page_count *page = &merge->pages[p];
        uint64_t of_name = name_cap(
            merge->caps->config, merge->caps->n_partitions, page->page, merge->kind == KEY_VV);
        n_new += page->is_new;
        cap = page->is_new && of_name > 0 && of_name < cap ? of_name : cap;
    }
    bool has_new = cap < UINT64_MAX;
    merge->exceeds =
        merge->exceeds || n < 0 || (has_new && (bucket->has_others || (uint64_t)n + n_new > cap));
}

static bool take_next(struct merge_counts *merge, const struct reply *reply)
{
    struct site_bucket *bucket = &merge->buckets[merge->next_asked];
    if (merge->awaits_size) {
        merge->awaits_size = false;
        merge->next_asked++;
        take_size(merge, bucket, reply_integer(reply, -1));
        return reply->type == REPLY_INTEGER;
    }
    if (reply->type != REPLY_ARRAY || reply->n != bucket->n_pages + bucket->n_others) {
        return false;
    }
    take_values(merge, bucket, reply->items);
    bucket->has_others = false;
    for (size_t i = bucket->n_pages; i < reply->n; i++) {
        bucket->has_others = bucket->has_others || reply->items[i].type != REPLY_NIL;
    }
    merge->awaits_size = bucket->n_others > 0;
    merge->next_asked += merge->awaits_size ? 0 : 1;
    return true;
}

bool merge_counts_take(struct merge_counts *merge, const struct reply *reply)
{
    while (merge->next_asked < merge->n_buckets && !merge->buckets[merge->next_asked].is_asked) {
        merge->next_asked++;
    }
    return merge->next_asked < merge->n_buckets && take_next(merge, reply);
}

bool merge_counts_exceeds(const struct merge_counts *merge)
{
    return merge->exceeds;
}
