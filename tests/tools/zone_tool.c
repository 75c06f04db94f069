/* zone_tool.c - storage/zone*.c and storage/time/bucket.c from outside, for test_zones.py.
 *
 *     printf 'Europe/Berlin 1792890000\n' | build/tools/zone_tool
 *
 * For each line "NAME SECONDS" the offset, then start and end of the hour, day and month; or "-"
 * where there is no such zone.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "storage/time/bucket.h"
#include "storage/time/zone_store.h"

int main(void)
{
    struct zone_store *store = zone_store_new(NULL);
    char name[256];
    int64_t at_s;

    if (store == NULL) {
        return 1;
    }
    while (scanf("%255s %" SCNd64, name, &at_s) == 2) {
        const char *fault = NULL;
        const struct zone *zone = zone_store_get(store, slice_of(name), &fault);

        if (zone == NULL) {
            printf("- %s\n", fault);
            continue;
        }
        printf("%" PRId64, zone_offset_s(zone, at_s));
        for (enum level level = LEVEL_HOUR; level <= LEVEL_MONTH; level++) {
            struct bucket bucket = bucket_at(zone, level, at_s);

            printf(" %" PRId64 " %" PRId64, bucket.start_s, bucket.end_s);
        }
        printf("\n");
    }
    zone_store_free(store);
    return 0;
}
