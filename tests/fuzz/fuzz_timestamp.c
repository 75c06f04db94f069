/* fuzz_timestamp.c - libFuzzer target: any text given to timestamp_rfc3339() and
 * timestamp_parameter().
 *
 *     clang -fsanitize=fuzzer,address,undefined -I. tests/fuzz/fuzz_timestamp.c \
 *         handlers/text/timestamp.c storage/time/bucket.c storage/time/zone.c
 *     ./a.out tests/fuzz/corpus/timestamp
 *
 * The first four bytes are the clock: minutes since 1970, the highest bit set for second 30.5.
 */
#include "handlers/text/timestamp.h"

#include <stdlib.h>

#define LAST_S INT64_C(253402300799) /* 9999-12-31T23:59:59Z */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Unlike assert(), not lost with NDEBUG. */
static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

/* What is read is in range, and printed it is read as the same. */
static void check_rfc3339(struct slice text)
{
    int64_t at_s = -1, again_s = -1;
    char printed[32];

    if (!timestamp_rfc3339(text, &at_s)) {
        require(at_s == -1);
        return;
    }
    require(at_s >= 0 && at_s <= LAST_S);
    timestamp_print(at_s, printed);
    require(timestamp_rfc3339(slice_of(printed), &again_s) && again_s == at_s);
}

/* The whole minute, or -1; the one or the other with all that belongs to it. */
static int64_t parameter(struct slice text, int64_t now_ms, enum timestamp_round round)
{
    int64_t at_s = -1;
    bool is_now = false;
    const char *detail = NULL;

    if (!timestamp_parameter(text, zone_utc(), now_ms, round, &at_s, &is_now, &detail)) {
        require(at_s == -1 && !is_now && detail && *detail);
        return -1;
    }
    require(!detail && at_s >= 0 && at_s <= LAST_S && at_s % 60 == 0);
    require(is_now == slice_equal(text, SLICE("now")));
    return at_s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text;
    uint32_t clock;
    int64_t now_ms, from_s, to_s;

    if (size < sizeof clock) {
        return 0;
    }
    memcpy(&clock, data, sizeof clock);
    text = (struct slice){(const char *)data + sizeof clock, size - sizeof clock};
    now_ms = (int64_t)(clock & 0x7fffffff) * 60000 + (clock >> 31 ? 30500 : 0);
    check_rfc3339(text);
    from_s = parameter(text, now_ms, TIMESTAMP_DOWN);
    to_s = parameter(text, now_ms, TIMESTAMP_UP);
    if (from_s < 0) {
        require(to_s < 0);
    } else if (to_s < 0) {
        require(from_s == LAST_S - 59); /* rounded up it is in the year 10000 */
    } else {
        require(to_s == from_s || to_s == from_s + 60);
    }
    return 0;
}
