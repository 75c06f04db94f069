/* fuzz_deletion.c - libFuzzer target: what Redis holds of deletions, as any bytes: a field and a
 * value of the list, a partition's tombstones, and names of keys that a sweep finds.
 *
 * The input is a deletion's field and, behind a NUL, any of the others.  What is read of the list
 * can be written, and reads as the same again.  A key that is found has the site's name in it.
 */
#include <stdlib.h>
#include <string.h>

#include "storage/deletion/found.h"
#include "storage/schema/deletion_record.h"
#include "storage/schema/tombstones.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Unlike assert(), not lost with NDEBUG. */
static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

static bool check_field(struct slice field, struct deletion_target *ret)
{
    struct key again;
    if (!deletion_field_parse(field, ret)) {
        return false;
    }
    require(ret->site.n > 0 && ret->site.n <= EVENT_SITE_MAX && ret->page.n <= EVENT_PAGE_MAX);
    deletion_field_print(&again, ret);
    require(slice_equal((struct slice){again.p, again.n}, field));
    return true;
}

static void check_record(struct slice value)
{
    struct deletion_record record, again;
    char text[DELETION_VALUE];
    if (!deletion_record_parse(value, &record)) {
        return;
    }
    require(record.done >= 0 && record.done <= DELETION_DONE && record.until_ms >= 0);
    deletion_record_print(&record, text);
    if (strlen(record.id) == DELETION_ID) {
        require(deletion_record_parse(slice_of(text), &again));
        require(again.done == record.done && again.until_ms == record.until_ms);
        require(strcmp(again.id, record.id) == 0);
    }
    require(!deletion_is_over(&record, INT64_MIN));
}

static void check_tombstones(struct slice text, struct slice site)
{
    static const int64_t arrivals[] = {INT64_MIN, 0, 1, 1773144000000, INT64_MAX - 1};
    struct tombstones all = tombstones_of(text);
    bool is_later = false;
    for (size_t i = sizeof(arrivals) / sizeof(arrivals[0]); i-- > 0;) {
        bool covers = tombstones_cover(&all, site, arrivals[i]);
        require(!covers || arrivals[i] < all.last_ms);
        require(covers || !is_later); /* what came before one that is covered is covered */
        is_later = covers;
    }
}

static void check_key(const struct deletion_target *target, struct slice key)
{
    static struct partitions partitions;
    unsigned partition = PARTITIONS_MAX;
    if (partitions.n == 0) {
        partitions_make(4, &partitions);
    }
    enum found_kind kind = found_judge(&partitions, target, key, &partition);
    if (kind == FOUND_NOTHING) {
        return;
    }
    require(partition < partitions.n && key.n > target->site.n);
    require(memmem(key.p, key.n, target->site.p, target->site.n) != NULL);
    require(kind == FOUND_KEY || target->page.n > 0);
    if (kind == FOUND_KEY && target->page.n > 0) {
        require(memmem(key.p, key.n, target->page.p, target->page.n) != NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *end = size == 0 ? NULL : memchr(text, '\0', size);
    size_t n = end == NULL ? size : (size_t)(end - text);
    struct slice rest = {end == NULL ? text : end + 1, end == NULL ? size : size - n - 1};
    struct deletion_target target;
    check_record(rest);
    if (check_field((struct slice){text, n}, &target)) {
        check_tombstones(rest, target.site);
        check_key(&target, rest);
    }
    return 0;
}
