/* orphans.c - ends marks that have no deletion any more, because a server went back. */
#include <stdio.h>
#include <string.h>

#include "storage/base/clock.h"
#include "storage/deletion/list.h"
#include "storage/deletion/turn.h"
#include "storage/redis/resp.h"
#include "storage/schema/tombstones.h"

/* No event arrived before this instant, ms. */
#define AT_ONCE_MS 1

#define SEARCH_MS 5000
#define LATE_MS   30000 /* pause after a server that hangs: each wait for it costs seconds */

/* Partition 0 goes back with the list, and is not searched. */
#define FIRST 1

void begin_orphans(struct turn *turn)
{
    struct deletion_work *work = turn->work;
    int64_t now_ms = monotonic_ms();
    if (turn->core->is_spread && now_ms >= work->search_ms) {
        work->search_ms = now_ms + SEARCH_MS;
        work->phase = DELETION_ORPHANS;
        work->partition = work->search_from > FIRST ? work->search_from : FIRST;
        work->is_ending = false;
    }
}

void orphans_after_fault(struct deletion_work *work, enum storage_err err)
{
    if (work->phase == DELETION_ORPHANS) {
        work->search_ms = monotonic_ms() + (err == STORAGE_LATE ? LATE_MS : 0);
        work->search_from = work->partition + 1;
    } else if (work->phase != DELETION_NONE) {
        work->search_ms = 0;
    }
}

static struct tombstones tombstones_in(const struct reply *marks)
{
    bool has_any = marks->items[1].type == REPLY_TEXT;
    return tombstones_of(has_any ? marks->items[1].text : SLICE(""));
}

/* Make the deletion that goes on by a partition's @marks the one at hand.  Its id, if the partition
 * has one, becomes the record's.  False: there is no mark. */
static bool take_target(struct deletion_work *work, const struct reply *marks)
{
    struct tombstones tombstones = tombstones_in(marks);
    struct slice id = marks->items[0].type == REPLY_TEXT ? marks->items[0].text : SLICE("");
    work->target = (struct deletion_target){.site = {NULL, 0}};
    bool is_marked =
        tombstones_going_on(&tombstones, &work->field) &&
        deletion_field_parse((struct slice){work->field.p, work->field.n}, &work->target);
    if (!is_marked) {
        work->field.n = 0;
    }
    if (id.n >= sizeof(work->record.id) || (!is_marked && id.n == 0)) {
        return false;
    }
    work->record = (struct deletion_record){.done = 0};
    if (id.n > 0) {
        memcpy(work->record.id, id.p, id.n);
    }
    return true;
}

/* Find the instant from which on events of the target count.  If the deletion is over, partition 0
 * still has the instant: for 10 minutes, and servers do not go back so far.  Otherwise all events
 * count that there are. */
static bool find_instant(struct turn *turn)
{
    struct deletion_work *work = turn->work;
    const struct reply *marks = read_marks(turn, 0);
    if (marks == NULL) {
        return false;
    }
    if (marks->items[2].type != REPLY_TEXT) { /* partition 0 has no state: nothing is known */
        begin_again(work);
        return true;
    }
    struct tombstones tombstones = tombstones_in(marks);
    int64_t before_ms =
        tombstones_before(&tombstones, (struct slice){work->field.p, work->field.n});
    bool is_over = before_ms != INT64_MIN && before_ms != INT64_MAX;
    work->record.until_ms = is_over ? before_ms : AT_ONCE_MS;
    return true;
}

/* Look at the partition at hand.  If it has an orphan, that becomes the target; otherwise go on to
 * the next partition.  The mark is read before the list, so it is not the mark of a deletion that
 * has begun meanwhile. */
static bool find_orphan(struct turn *turn, bool *ret_found)
{
    struct deletion_work *work = turn->work;
    *ret_found = false;
    const struct reply *marks = read_marks(turn, work->partition);
    if (marks == NULL) {
        return false;
    }
    if (!take_target(work, marks)) {
        work->partition++;
        return true;
    }
    const struct reply *list = deletion_list_read(turn->core, &turn->pipe);
    if (list == NULL) {
        return false;
    }
    if (list->n > 0) { /* a deletion goes first; partitions are searched after it */
        begin_again(work);
        return true;
    }
    *ret_found = true;
    return find_instant(turn);
}

bool end_orphan(struct turn *turn)
{
    struct deletion_work *work = turn->work;
    bool is_found = work->is_ending;
    bool is_done = false;
    if (work->partition >= turn->core->partitions.n) {
        work->search_from = FIRST;
        begin_again(work);
        return true;
    }
    if (!is_found && !find_orphan(turn, &is_found)) {
        return false;
    }
    if (!is_found || work->phase != DELETION_ORPHANS) {
        return true;
    }
    turn->is_reading = false;
    if (!end_partition(turn, &is_done)) {
        return false;
    }
    if (is_done) {
        char site[EVENT_SITE_MAX + 1] = "pages";
        if (work->target.site.n > 0) {
            (void)snprintf(
                site, sizeof(site), "%.*s", (int)work->target.site.n, work->target.site.p);
        }
        core_notice(turn->core, STORAGE_DELETION_LOST, site);
    }
    return true;
}
