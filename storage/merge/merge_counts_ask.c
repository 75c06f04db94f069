/* merge_counts_ask.c - what the counters of old buckets have, asked behind the WATCH. */
#include "storage/base/index.h"
#include "storage/job/name_cap.h"
#include "storage/merge/merge_counts.h"
#include "storage/merge/merge_counts_state.h"
#include "storage/redis/resp.h"

/* Where nearly all buckets are new, as in an import, it is asked of many at once whether any is
 * there: an EXISTS of 16 keys costs Redis a fifth of 16 ZMSCORE and ZCARD. */
#define GROUP_MAX  16
#define MOSTLY_NEW 16 /* at most one of so many had counters lately.. */
#define FOUND_KEPT 64 /* ..among so many or more */

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
    for (uint32_t p = bucket->pages.first; p != INDEX_NONE; p = merge->pages[p].next) {
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
    struct key named;
    struct slice classes[CLASSES_MAX];
    char other[1 + NAME_CLASS_MAX];
    bucket->n_others = find_classes(merge, bucket, classes);
    struct slice key = merge_counters_key(&named, tag, merge, bucket);
    resp_head(out, 2 + bucket->pages.n + bucket->n_others);
    resp_text(out, bucket->target.bucket.level == LEVEL_MINUTE ? "HMGET" : "ZMSCORE");
    resp_slice(out, key);
    for (uint32_t p = bucket->pages.first; p != INDEX_NONE; p = merge->pages[p].next) {
        resp_slice(out, merge->pages[p].page);
    }
    for (uint32_t i = 0; i < bucket->n_others; i++) {
        resp_slice(out, counted_name_of_others(classes[i], other));
    }
    if (bucket->n_others > 0) {
        resp_head(out, 2);
        resp_text(out, "ZCARD");
        resp_slice(out, key);
    }
    return bucket->n_others > 0 ? 2 : 1;
}

/* The questions of buckets that are asked for one by one. */
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

/* One question for GROUP_MAX buckets: how many of them have counters. */
static size_t write_groups(
    struct merge_counts *merge, size_t n_grouped, const char *tag, struct buffer *out)
{
    size_t left = 0; /* of the command at hand */
    merge->n_groups = merge->next_grouped = 0;
    for (size_t i = 0; i < merge->n_buckets; i++) {
        struct key key;
        if (!merge->buckets[i].in_group) {
            continue;
        }
        if (left == 0) {
            left = n_grouped < GROUP_MAX ? n_grouped : GROUP_MAX;
            resp_head(out, 1 + left);
            resp_text(out, "EXISTS");
            merge->n_groups++;
        }
        resp_slice(out, merge_counters_key(&key, tag, merge, &merge->buckets[i]));
        left--;
        n_grouped--;
    }
    return merge->n_groups;
}

static bool are_mostly_new(const struct merge_counts *merge, enum level level)
{
    const struct found *found = &merge->found[level];
    return found->n_asked >= FOUND_KEPT && found->n_there * MOSTLY_NEW <= found->n_asked;
}

size_t merge_counts_write_questions(struct merge_counts *merge, const char *tag, int64_t now_ms,
    const struct rollup_state *state, const struct merge_caps *caps, struct buffer *out)
{
    size_t n_grouped = 0;
    merge->now_ms = now_ms;
    merge->caps = caps;
    merge->exceeds = false;
    for (size_t i = 0; i < merge->n_buckets; i++) {
        struct site_bucket *bucket = &merge->buckets[i];
        bucket->is_settled =
            is_settled(merge, bucket->target.bucket, state) && !merge_is_over(merge, bucket);
        bool asks = bucket->is_settled && bucket->target.bucket.level != LEVEL_MINUTE;
        bucket->in_group = asks && are_mostly_new(merge, bucket->target.bucket.level);
        bucket->is_asked = asks && !bucket->in_group;
        n_grouped += bucket->in_group;
    }
    size_t n = write_groups(merge, n_grouped, tag, out);
    return n + write_asked(merge, tag, out);
}

size_t merge_counts_write_rest(struct merge_counts *merge, const char *tag, struct buffer *out)
{
    for (size_t i = 0; i < merge->n_buckets; i++) {
        struct site_bucket *bucket = &merge->buckets[i];
        bucket->is_asked = bucket->in_group;
    }
    return write_asked(merge, tag, out);
}

/* Has the hour all that its minutes have?  It must live as long as they do: it would else be gone
 * when they are not, by its expiry, or by a clock that was ahead for a while.  And the past of a
 * zone may change, so that its hours begin at another minute: that of UTC does not. */
static bool is_whole(const struct site_bucket *hour, const struct site_bucket *minute)
{
    int64_t hour_ms = hour->target.expire_ms;
    int64_t minute_ms = minute->target.expire_ms;
    return (hour_ms == 0 || (minute_ms != 0 && minute_ms <= hour_ms)) &&
           hour->site->zone == zone_utc();
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

/* The bucket has no counters: they are to be those of the fold. */
static void tell_all_new(struct merge_counts *merge, struct site_bucket *bucket)
{
    for (uint32_t p = bucket->pages.first; p != INDEX_NONE; p = merge->pages[p].next) {
        merge->pages[p].is_new = true;
        merge->pages[p].value = merge->pages[p].count;
    }
    bucket->is_told = true;
}

/* Are all names of the minute new? */
static bool is_told_by_hour(const struct merge_counts *merge, const struct site_bucket *minute)
{
    for (uint32_t p = minute->pages.first; p != INDEX_NONE; p = merge->pages[p].next) {
        if (!is_new_to_hour(merge, &merge->pages[p])) {
            return false;
        }
    }
    return true;
}

size_t merge_counts_write_minute_questions(
    struct merge_counts *merge, const char *tag, struct buffer *out)
{
    for (size_t i = 0; i < merge->n_buckets; i++) {
        struct site_bucket *bucket = &merge->buckets[i];
        bucket->is_asked = false;
        if (!bucket->is_settled || bucket->target.bucket.level != LEVEL_MINUTE) {
            continue;
        }
        if (is_told_by_hour(merge, bucket)) {
            tell_all_new(merge, bucket);
        } else {
            bucket->is_asked = true;
        }
    }
    return write_asked(merge, tag, out);
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
    for (size_t i = 0; i < bucket->pages.n; i++) {
        bucket->is_told = bucket->is_told && value_of(&items[i]) >= 0;
    }
    uint32_t p = bucket->pages.first;
    for (size_t i = 0; i < bucket->pages.n; i++, p = merge->pages[p].next) {
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
    for (uint32_t p = bucket->pages.first; p != INDEX_NONE; p = merge->pages[p].next) {
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

/* A bucket that was asked for has counters, or has none. */
static void learn_found(struct merge_counts *merge, const struct site_bucket *bucket, bool is_there)
{
    struct found *found = &merge->found[bucket->target.bucket.level];
    if (found->n_asked == 2 * FOUND_KEPT) {
        found->n_asked /= 2;
        found->n_there /= 2;
    }
    found->n_asked++;
    found->n_there += is_there;
}

/* No bucket of a group has counters. */
static void take_none(struct merge_counts *merge, struct site_bucket *bucket)
{
    struct slice classes[CLASSES_MAX];
    tell_all_new(merge, bucket);
    bucket->in_group = bucket->has_others = false;
    if (find_classes(merge, bucket, classes) > 0) {
        take_size(merge, bucket, 0);
    }
}

/* How many buckets of the next group have counters.  Where some have, all are asked for. */
static bool take_group(struct merge_counts *merge, const struct reply *reply)
{
    const int64_t n_there = reply_integer(reply, -1);
    int64_t n = 0;
    for (; n < GROUP_MAX && merge->next_grouped < merge->n_buckets; merge->next_grouped++) {
        struct site_bucket *bucket = &merge->buckets[merge->next_grouped];
        if (!bucket->in_group) {
            continue;
        }
        learn_found(merge, bucket, n++ < n_there); /* which ones are there does not matter */
        if (n_there == 0) {
            take_none(merge, bucket);
        }
    }
    merge->n_groups--;
    return reply->type == REPLY_INTEGER;
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
    if (reply->type != REPLY_ARRAY || reply->n != bucket->pages.n + bucket->n_others) {
        return false;
    }
    take_values(merge, bucket, reply->items);
    bool found = false;
    bucket->has_others = false;
    for (size_t i = 0; i < reply->n; i++) {
        if (reply->items[i].type != REPLY_NIL) {
            found = true;
            bucket->has_others = bucket->has_others || i >= bucket->pages.n;
        }
    }
    if (!bucket->in_group) {
        learn_found(merge, bucket, found);
    }
    merge->awaits_size = bucket->n_others > 0;
    merge->next_asked += merge->awaits_size ? 0 : 1;
    return true;
}

bool merge_counts_take(struct merge_counts *merge, const struct reply *reply)
{
    if (merge->n_groups > 0) {
        return take_group(merge, reply);
    }
    while (merge->next_asked < merge->n_buckets && !merge->buckets[merge->next_asked].is_asked) {
        merge->next_asked++;
    }
    return merge->next_asked < merge->n_buckets && take_next(merge, reply);
}

bool merge_counts_exceeds(const struct merge_counts *merge)
{
    return merge->exceeds;
}
