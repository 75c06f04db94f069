/* fuzz_zone_file.c - libFuzzer target: any bytes given to zone_from_file().
 *
 * A zone that is made of them has spans that tile time, and hours, days and months that hold what
 * they are asked for, tile, nest, and have no more parts than a rollup has room for.
 */
#include <stdlib.h>

#include "storage/time/bucket.h"
#include "storage/time/zone_file.h"

#define PARTS_MAX 62

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Unlike assert(), not lost with NDEBUG. */
static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

static void check_span(const struct zone *zone, int64_t at_s)
{
    struct zone_span span = zone_span_at(zone, at_s);

    require(span.from_s <= at_s && at_s < span.to_s);
    require(span.offset_s % 60 == 0);
    if (span.to_s != INT64_MAX) {
        require(zone_span_at(zone, span.to_s).from_s == span.to_s);
    }
    if (span.from_s != INT64_MIN) {
        require(zone_span_at(zone, span.from_s - 1).to_s == span.from_s);
    }
}

static void check_buckets(const struct zone *zone, int64_t at_s)
{
    struct bucket part = bucket_at(zone, LEVEL_MINUTE, at_s);

    for (enum level level = LEVEL_HOUR; level <= LEVEL_MONTH; level++) {
        struct bucket bucket = bucket_at(zone, level, at_s);
        int64_t part_s = bucket.start_s;
        int parts = 0;

        require(bucket.start_s <= part.start_s && part.end_s <= bucket.end_s);
        require(bucket_at(zone, level, bucket.end_s).start_s == bucket.end_s);
        require(bucket_at(zone, level, bucket.end_s - 1).start_s == bucket.start_s);
        for (; part_s < bucket.end_s; parts++) {
            part_s = bucket_at(zone, (enum level)(level - 1), part_s).end_s;
        }
        require(part_s == bucket.end_s && parts <= PARTS_MAX);
        part = bucket;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *fault = NULL;
    struct zone *zone =
        zone_from_file((struct slice){(const char *)data, size}, "Fuzzed/Zone", &fault);

    if (zone == NULL) {
        require(fault != NULL && *fault != '\0');
        return 0;
    }
    for (int64_t at_s = -INT64_C(86400) * 400; at_s < INT64_C(253402300799);
         at_s += at_s < INT64_C(4102444800) ? INT64_C(31556952) : INT64_C(1262278080) * 3) {
        struct zone_span span = zone_span_at(zone, at_s);

        check_span(zone, at_s);
        check_buckets(zone, at_s);
        if (span.to_s < INT64_C(253402300799)) {
            check_buckets(zone, span.to_s);
            check_buckets(zone, span.to_s - 1);
        }
    }
    zone_free(zone);
    return 0;
}
