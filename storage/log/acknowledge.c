#include "storage/log/acknowledge.h"

#include "storage/base/clock.h"
#include "storage/session/replicated.h"
#include "storage/session/reply_fault.h"

#define KEEP_EVENTS 100 /* an entry is kept only if its requests have so many events on average */
#define KEEP_MS     100 /* an entry is kept no longer, and no nearer to the deadline of a request */

bool acknowledge_wait_is_due(const struct appender *a)
{
    if (a->core->config.ack_replicas == 0) {
        return false;
    }
    bool open_answers = a->unacknowledged != a->open || a->lag_ms != 0;
    if (a->lag_ms != 0 && a->last != NULL && a->last->state == ENTRY_WAITING) {
        return false; /* entries that go again would go a few at a time, between two WAITs */
    }
    return (a->lag_ms == 0 && a->n_out > 0) || (a->n_waits == 0 && open_answers);
}

void acknowledge_let_fold(struct appender *a, struct log_entry *entry)
{
    if (!entry->is_let_fold) {
        entry->is_let_fold = true;
        (void)unfolded_put(
            a->unfolded, a->place, entry); /* without memory folds read it from the stream */
    }
}

void acknowledge_let_fold_all(struct appender *a)
{
    for (struct log_entry *e = a->unacknowledged; e != a->open; e = e->next) {
        acknowledge_let_fold(a, e);
    }
}

/* Acknowledge the entries that are answered, up to number @most. */
static void acknowledge_up_to(struct appender *a, uint64_t most)
{
    acknowledge_let_fold_all(a);
    for (; a->unacknowledged != a->open && a->unacknowledged->n <= most;
         a->unacknowledged = a->unacknowledged->next) {
        appender_mark_all_done(a, a->unacknowledged, STORAGE_OK);
    }
}

/* Acknowledge all entries that are answered.  A round of folds that keeps entries is told. */
static void acknowledge_all(struct appender *a)
{
    acknowledge_up_to(a, unfolded_will_tell(a->unfolded, a->place, false));
}

bool acknowledge_take_wait(struct appender *a, const struct reply *reply, int64_t sent_ms)
{
    a->n_waits--;
    if (reply->type != REPLY_INTEGER) {
        bool is_deposed = reply_is_error(reply, "UNBLOCKED");
        if (reply->type == REPLY_ERROR && !is_deposed) { /* a permission is missing, for example */
            core_notice(a->core, STORAGE_REFUSING, reply->text.p);
        }
        return false;
    }
    if (reply->integer >= a->core->config.ack_replicas) {
        a->lag_ms = 0;
        standing_acked(append_standing(a), a->wrote_ms);
        acknowledge_all(a);
    } else if (a->lag_ms == 0) {
        a->lag_ms = sent_ms;
        atomic_fetch_add(&a->core->stats.ack_late, 1);
    }
    return true;
}

bool acknowledge_lags(const struct appender *a, int64_t now_ms)
{
    return a->lag_ms != 0 && now_ms - a->lag_ms >= REPLICAS_PATIENCE_MS;
}

/* Can @entry wait some milliseconds?  Small requests cannot: they come in great numbers, each of
 * them behind the answer to another one, so to wait would cost most of their rate. */
static bool entry_can_wait(const struct log_entry *entry, int64_t now_ms)
{
    size_t least = 0;
    bool can = entry->n_keyed == 0 && now_ms - entry->answered_ms < KEEP_MS;
    for (const struct storage_job *job = entry->jobs; can && job != NULL; job = job->next) {
        least += KEEP_EVENTS;
        can = entry->n_plain >= least && job->deadline_ms - now_ms > KEEP_MS;
    }
    return can;
}

/* Can all entries that are answered wait some milliseconds? */
static bool can_wait(const struct appender *a)
{
    int64_t now_ms = monotonic_ms();
    const struct log_entry *e = a->unacknowledged;
    while (e != a->open && entry_can_wait(e, now_ms)) {
        e = e->next;
    }
    return e == a->open;
}

void acknowledge_or_keep(struct appender *a)
{
    if (a->core->config.ack_replicas > 0 || a->unacknowledged == a->open) {
        return;
    }
    acknowledge_up_to(a, unfolded_will_tell(a->unfolded, a->place, true));
    if (a->unacknowledged != a->open && !can_wait(a)) {
        acknowledge_all(a);
    }
}

void acknowledge_kept(struct appender *a)
{
    if (a->core->config.ack_replicas == 0 && a->unacknowledged != a->open) {
        acknowledge_all(a);
    }
}
