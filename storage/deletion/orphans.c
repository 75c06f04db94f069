#include <string.h>

#include "storage/base/clock.h"
#include "storage/deletion/list.h"
#include "storage/deletion/turn.h"
#include "storage/redis/resp.h"
#include "storage/schema/tombstones.h"

/* No event arrived before this instant, ms. */
#define AT_ONCE_MS 1

#define SEARCH_MS 5000

void begin_orphans(struct turn *turn)
{
    struct deletion_work *work = turn->work;
    int64_t now_ms = monotonic_ms();
    if (turn->core->is_spread && now_ms >= work->search_ms) {
        work->search_ms = now_ms + SEARCH_MS;
        work->phase = DELETION_ORPHANS;
        work->partition = 1; /* partition 0 goes back with the list */
    }
}

/* HMGET deleting, deleted; NULL: see the pipeline's err. */
static const struct reply *read_marks(struct turn *turn, unsigned partition)
{
    struct key key;
    struct buffer *out = pipeline_command(&turn->pipe, partition, "HMGET", 3);
    key_fixed(&key, turn->core->partitions.tag[partition], "state", SLICE(""));
    resp_word(out, key.p, key.n);
    resp_text(out, "deleting");
    resp_text(out, "deleted");
    const struct reply *reply = pipeline_ask(&turn->pipe, false);
    if (reply != NULL && (reply->type != REPLY_ARRAY || reply->n != 2)) {
        (void)pipeline_foreign(&turn->pipe, "a partition's state");
        return NULL;
    }
    return reply;
}

static struct tombstones tombstones_in(const struct reply *marks)
{
    bool has_any = marks->items[1].type == REPLY_TEXT;
    return tombstones_of(has_any ? marks->items[1].text : SLICE(""));
}

/* The site of a deletion that goes on becomes the target; an empty one: pages are deleted.  False:
 * there is no mark. */
static bool take_target(struct deletion_work *work, const struct reply *marks)
{
    struct tombstones tombstones = tombstones_in(marks);
    struct slice site = tombstones_going_on(&tombstones);
    if (site.n >= sizeof(work->field.p) || (site.n == 0 && marks->items[0].type != REPLY_TEXT)) {
        return false;
    }
    if (site.n > 0) {
        memcpy(work->field.p, site.p, site.n);
    }
    work->field.n = site.n;
    work->field.p[site.n] = '\0';
    work->target = (struct deletion_target){.site = {work->field.p, site.n}};
    return true;
}

/* From when on events of the target count.  Where the deletion is over, partition 0 still says it:
 * for 10 minutes, and servers do not go back so far.  Else all count that there are. */
static bool find_instant(struct turn *turn)
{
    struct deletion_work *work = turn->work;
    const struct reply *marks = read_marks(turn, 0);
    if (marks == NULL) {
        return false;
    }
    struct tombstones tombstones = tombstones_in(marks);
    int64_t before_ms = tombstones_before(&tombstones, work->target.site);
    bool is_over = before_ms != INT64_MIN && before_ms != INT64_MAX;
    work->record.until_ms = is_over ? before_ms : AT_ONCE_MS;
    return true;
}

static void end_search(struct deletion_work *work)
{
    work->phase = DELETION_NONE;
    work->look_ms = 0;
}

bool end_orphan(struct turn *turn)
{
    struct deletion_work *work = turn->work;
    if (work->partition >= turn->core->partitions.n) {
        end_search(work);
        return true;
    }
    const struct reply *marks = read_marks(turn, work->partition);
    if (marks == NULL) {
        return false;
    }
    if (!take_target(work, marks)) {
        work->partition++;
        return true;
    }
    /* The mark was read before the list.  So it is not of a deletion that has begun meanwhile. */
    const struct reply *list = deletion_list_read(turn->core, &turn->pipe);
    if (list == NULL) {
        return false;
    }
    if (list->n > 0) { /* this one first; the partitions are searched behind it */
        end_search(work);
        return true;
    }
    if (!find_instant(turn)) {
        return false;
    }
    turn->is_reading = false;
    if (!mark_partition(turn, work->partition)) {
        return false;
    }
    core_notice(
        turn->core, STORAGE_DELETION_LOST, work->target.site.n > 0 ? work->target.site.p : "pages");
    return true;
}
