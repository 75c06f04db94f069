/* merge_counts_ask.c - what the counters of old buckets have, asked behind the WATCH. */
#include "storage/base/index.h"
#include "storage/merge/merge_counts.h"
#include "storage/merge/merge_counts_state.h"
#include "storage/redis/resp.h"

/* Does nobody but a fold or a deletion change the bucket's counters? */
static bool is_settled(
    const struct merge_counts *merge, const struct bucket bucket, const struct rollup_state *state)
{
    return bucket.level == LEVEL_MINUTE ? !merge_is_recent(merge, bucket)
                                        : closed_for_readers(state, bucket);
}

static void write_question(const struct merge_counts *merge, const struct site_bucket *bucket,
    const char *tag, struct buffer *out)
{
    struct key key;
    merge_counters_key(&key, tag, merge, bucket);
    resp_head(out, 2 + bucket->n_pages);
    resp_text(out, bucket->target.bucket.level == LEVEL_MINUTE ? "HMGET" : "ZMSCORE");
    resp_word(out, key.p, key.n);
    for (uint32_t p = bucket->first_page; p != INDEX_NONE; p = merge->pages[p].next) {
        resp_word(out, merge->pages[p].page.p, merge->pages[p].page.n);
    }
}

size_t merge_counts_write_questions(struct merge_counts *merge, const char *tag, int64_t now_ms,
    const struct rollup_state *state, struct buffer *out)
{
    size_t n = 0;
    merge->now_ms = now_ms;
    merge->next_asked = 0;
    for (size_t i = 0; i < merge->n_buckets; i++) {
        struct site_bucket *bucket = &merge->buckets[i];
        bucket->is_asked =
            is_settled(merge, bucket->target.bucket, state) && !merge_is_over(merge, bucket);
        if (bucket->is_asked) {
            write_question(merge, bucket, tag, out);
            n++;
        }
    }
    return n;
}

/* What the counter has, or -1 for what is no whole number: a score of more than 17 digits. */
static int64_t value_of(const struct reply *reply)
{
    return reply->type == REPLY_NIL ? 0 : reply_integer(reply, -1);
}

bool merge_counts_take(struct merge_counts *merge, const struct reply *reply)
{
    while (merge->next_asked < merge->n_buckets && !merge->buckets[merge->next_asked].is_asked) {
        merge->next_asked++;
    }
    if (merge->next_asked == merge->n_buckets) {
        return false;
    }
    struct site_bucket *bucket = &merge->buckets[merge->next_asked++];
    if (reply->type != REPLY_ARRAY || reply->n != bucket->n_pages) {
        return false;
    }
    bucket->is_told = true;
    for (size_t i = 0; i < reply->n; i++) {
        bucket->is_told = bucket->is_told && value_of(&reply->items[i]) >= 0;
    }
    uint32_t p = bucket->first_page;
    for (size_t i = 0; bucket->is_told && i < reply->n; i++, p = merge->pages[p].next) {
        struct page_count *page = &merge->pages[p];
        page->is_new = reply->items[i].type == REPLY_NIL;
        page->value = (uint64_t)value_of(&reply->items[i]) + page->count;
    }
    return true;
}
