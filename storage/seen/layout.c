#include "storage/seen/layout.h"

#include <math.h>

#include "storage/time/units.h"

/* How much more than its share of the pairs a partition may get, by chance. */
#define PARTITION_SPARE 0.02

/* A smaller layer would only be full at the first log that is folded. */
#define CAPACITY_MIN 1024

/* A pair may have arrived when the clock was so much later than is known: in a month that has not
 * begun. */
#define UNKNOWN_AHEAD_S DAY_S

uint64_t seen_fingerprint(const struct visitor_id *user, uint64_t page_hash)
{
    unsigned char text[sizeof(user->bytes) + sizeof(page_hash)];
    memcpy(text, user->bytes, sizeof(user->bytes));
    memcpy(text + sizeof(user->bytes), &page_hash, sizeof(page_hash));
    return murmur_hash64a(text, sizeof(text), 0);
}

struct bloom_hash seen_hash(uint64_t fingerprint)
{
    return (struct bloom_hash){
        fingerprint, murmur_hash64a(&fingerprint, sizeof(fingerprint), fingerprint)};
}

int64_t seen_expire_ms(struct bucket month, int64_t keep_s)
{
    return (month.end_s + keep_s) * 1000;
}

struct bucket seen_newest_month(int64_t latest_s)
{
    return bucket_at(zone_utc(), LEVEL_MONTH, latest_s + UNKNOWN_AHEAD_S);
}

unsigned seen_months(
    struct bucket newest, int64_t now_s, int64_t keep_s, struct bucket ret[SEEN_MONTHS_MAX])
{
    unsigned n = 0;
    struct bucket month = newest;
    while (n < SEEN_MONTHS_MAX && month.end_s + keep_s > now_s && month.end_s > 0) {
        ret[n++] = month;
        month = bucket_at(zone_utc(), LEVEL_MONTH, month.start_s - 1);
    }
    return n;
}

struct bloom_params seen_params(const struct seen_config *config, unsigned partitions)
{
    /* 28 days is the shortest month: so many ends of months lie in the time kept, and one month is
     * not over */
    int64_t months = config->keep_s / (28 * DAY_S) + 2;
    double share = (double)config->capacity / partitions * (1 + PARTITION_SPARE);
    return (struct bloom_params){.rules = BLOOM_OWN,
        .capacity = (uint64_t)ceil(fmax(share, CAPACITY_MIN)),
        .error = config->error / (double)months,
        .expansion = BLOOM_EXPANSION,
        .segment_bits = SEEN_SEGMENT_BITS};
}
