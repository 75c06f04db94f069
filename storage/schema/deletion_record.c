#include "storage/schema/deletion_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void deletion_field_add(struct key *field, struct slice text)
{
    memcpy(field->p + field->n, text.p, text.n);
    field->n += text.n;
}

void deletion_field_print(struct key *field, const struct deletion_target *target)
{
    field->n = 0;
    deletion_field_add(field, target->site);
    if (target->page.n > 0) {
        deletion_field_add(field, target->is_prefix ? SLICE("\n^") : SLICE("\n="));
        deletion_field_add(field, target->page);
    }
}

bool deletion_field_parse(struct slice field, struct deletion_target *ret)
{
    struct slice page = field;
    *ret = (struct deletion_target){.site = field};
    bool has_page = slice_take_until(&page, '\n', &ret->site);
    if (ret->site.n == 0 || ret->site.n > EVENT_SITE_MAX || !has_page) {
        return ret->site.n > 0 && ret->site.n <= EVENT_SITE_MAX;
    }
    ret->is_prefix = slice_take(&page, '^');
    if (!ret->is_prefix && !slice_take(&page, '=')) {
        return false;
    }
    ret->page = page;
    return page.n > 0 && page.n <= EVENT_PAGE_MAX;
}

void deletion_record_print(const struct deletion_record *record, char ret[static DELETION_VALUE])
{
    (void)snprintf(
        ret, DELETION_VALUE, "%s %" PRId64 " %" PRId64, record->id, record->done, record->until_ms);
}

bool deletion_record_parse(struct slice value, struct deletion_record *ret)
{
    struct deletion_record record = {.done = 0};
    uint64_t done, until_ms;
    if (value.n < DELETION_ID) {
        return false;
    }
    memcpy(record.id, value.p, DELETION_ID);
    value = (struct slice){value.p + DELETION_ID, value.n - DELETION_ID};
    if (!slice_take(&value, ' ') || !slice_take_number(&value, &done) || done > DELETION_DONE ||
        !slice_take(&value, ' ') || !slice_take_number(&value, &until_ms) || value.n > 0) {
        return false;
    }
    record.done = (int64_t)done;
    record.until_ms = (int64_t)until_ms;
    *ret = record;
    return true;
}
