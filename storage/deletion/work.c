#include "storage/deletion/work.h"

#include <string.h>

#include "storage/base/clock.h"
#include "storage/deletion/list.h"
#include "storage/deletion/turn.h"
#include "storage/redis/resp.h"

#define TURN_MS 100  /* length of a turn: the rollup's thread has other work as well */
#define ASK_MS  2000 /* longest wait for an answer */
/* How far ahead the instant of the end is.  Partitions are told of the instant one by one, and an
 * event's time of arrival may be a second ahead of Redis's clock.  For a site every process must
 * also have looked at the list by then.  If an instant came too soon, the next one is twice as far
 * ahead. */
#define AHEAD_MS       2500
#define AHEAD_PAGES_MS 1500
#define LATE_MAX       3
#define RETRY_MS       1000
#define AGAIN_MS       10
#define SWEEPS         50

/* How much of a deletion is done at the end of each step. */
#define DONE_MARKED 0.05
#define DONE_SWEPT  0.9
#define DONE_ENDED  0.99

/* ---- the record ---- */

/* Write the record as it is now; @is_over: take the record away. */
static bool write_record(struct turn *turn, bool is_over)
{
    struct deletion_work *work = turn->work;
    char value[DELETION_VALUE] = "";
    if (!is_over) {
        deletion_record_print(&work->record, value);
    }
    struct buffer *out = pipeline_script(&turn->pipe, 0, SCRIPT_DELETION_STEP, 2, 5);
    key_put(out, turn->core->partitions.tag[0], "pass");
    deletion_list_put(turn->core, out);
    resp_decimal(out, work->token);
    resp_word(out, work->field.p, work->field.n);
    resp_text(out, work->record.id);
    resp_text(out, value);
    resp_decimal(out, work->record.until_ms);
    const struct reply *reply = pipeline_ask(&turn->pipe, false);
    return reply != NULL && reply_integer(reply, 0) == 1;
}

/* Note how much is done, 0 to 1.  The record is written when that has grown by a hundredth. */
static bool set_done(struct turn *turn, double done)
{
    int64_t is = (int64_t)(done * DELETION_DONE);
    if (is < turn->work->record.done + DELETION_DONE / 100) {
        return true;
    }
    turn->work->record.done = is;
    return write_record(turn, false);
}

/* Begin to ask all partitions whether they know the end, but for partition 0: it goes back with the
 * record. */
static void begin_over(struct deletion_work *work)
{
    work->phase = DELETION_OVER;
    work->partition = 1;
    work->is_ending = false;
}

/* Make a deletion of the list the one at hand: copy its field. */
static void take_field(struct deletion_work *work, const struct reply *reply)
{
    memcpy(work->field.p, reply[0].text.p, reply[0].text.n);
    work->field.n = reply[0].text.n;
    if (!deletion_field_parse((struct slice){work->field.p, work->field.n}, &work->target) ||
        !deletion_record_parse(reply[1].text, &work->record)) {
        work->phase = DELETION_NONE;
        return;
    }
    work->partition = work->n_sweeps = work->n_late = 0;
    work->phase = DELETION_MARK;
    if (work->record.until_ms != 0) {
        begin_over(work);
    }
}

/* Look at the list, and begin with the first deletion of it if this process leads. */
static bool look_at_list(struct turn *turn)
{
    struct deletion_work *work = turn->work;
    const struct reply *reply = deletion_list_read(turn->core, &turn->pipe);
    if (reply == NULL) {
        return false;
    }
    for (size_t i = 0; i + 1 < reply->n && work->token != 0 && work->phase == DELETION_NONE;
         i += 2) {
        if (reply->items[i].text.n <= sizeof(work->field.p)) {
            take_field(work, &reply->items[i]);
            work->stands_us = session_stands_since(turn->pipe.session);
        }
    }
    work->look_ms = monotonic_ms() + DELETIONS_LOOK_MS;
    if (reply->n == 0 && work->token != 0) {
        begin_orphans(turn);
    }
    return true;
}

/* ---- the steps ---- */

static bool redis_now_ms(struct turn *turn, int64_t *ret)
{
    (void)pipeline_command(&turn->pipe, 0, "TIME", 0);
    const struct reply *reply = pipeline_ask(&turn->pipe, false);
    if (reply == NULL) {
        return false;
    }
    core_time_of(turn->core, 0, reply_time_us(reply));
    *ret = reply_time_us(reply) / 1000;
    return true;
}

static void begin_sweep(struct turn *turn)
{
    turn->work->stands_us = session_stands_since(turn->pipe.session);
    sweep_begin(&turn->work->sweep, turn->pipe.session);
}

static bool do_mark(struct turn *turn)
{
    struct deletion_work *work = turn->work;
    if (work->partition < turn->core->partitions.n) {
        return mark_partition(turn, work->partition++);
    }
    work->phase = DELETION_SWEEP;
    begin_sweep(turn);
    return set_done(turn, DONE_MARKED);
}

/* Mark all partitions: for the sweep, without an instant, or for the end. */
static void begin_marks(struct turn *turn, enum deletion_phase phase)
{
    struct deletion_work *work = turn->work;
    work->stands_us = session_stands_since(turn->pipe.session);
    work->phase = phase;
    work->partition = 0;
    work->record.until_ms = 0;
}

static bool do_sweep(struct turn *turn)
{
    struct deletion_work *work = turn->work;
    const struct sweep_order under = {work->token, work->record.id};
    enum sweep_result result =
        sweep_step(&work->sweep, turn->core, &turn->pipe, &work->target, &under);
    double first = DONE_MARKED + 0.8 * sweep_share(&work->sweep, turn->core);
    switch (result) {
    case SWEEP_UNMARKED:
        begin_again(work);
        return true;
    case SWEEP_FENCED:
    case SWEEP_FAULT:
        return false;
    case SWEEP_GOES_ON:
        return work->n_sweeps > 0 || set_done(turn, first);
    case SWEEP_DONE:
        break;
    }
    /* Keys that were swept may be back if a connection was lost since the sweep's beginning. */
    bool is_clean = work->sweep.n_found == 0 && !has_reconnected(turn);
    if (is_clean || ++work->n_sweeps >= SWEEPS) {
        begin_marks(turn, DELETION_END);
    } else {
        begin_sweep(turn);
    }
    return set_done(turn, DONE_SWEPT);
}

/* Tell all partitions the same instant, before anything arrives at it.  Then write it into the
 * record, so that processes take events from then on. */
static bool do_end(struct turn *turn)
{
    struct deletion_work *work = turn->work;
    int64_t now_ms = 0;
    if (work->partition == 0) {
        if (!redis_now_ms(turn, &now_ms)) {
            return false;
        }
        int64_t ahead_ms = work->target.page.n > 0 ? AHEAD_PAGES_MS : AHEAD_MS;
        int64_t arrival_ms = deletions_arrival_ms(&turn->core->deletions, now_ms);
        work->record.until_ms = arrival_ms + (ahead_ms << work->n_late);
    }
    if (work->partition < turn->core->partitions.n) {
        /* Partition 0 comes last: a reader that sees its new id sees those of the others, too, and
         * takes nothing that was remembered while they were swept. */
        return mark_partition(turn, ++work->partition % turn->core->partitions.n);
    }
    if (!redis_now_ms(turn, &now_ms)) {
        return false;
    }
    if (deletions_arrival_ms(&turn->core->deletions, now_ms) >= work->record.until_ms) {
        /* Telling took too long: what has come since the instant, some partitions have counted. */
        work->n_late += work->n_late < LATE_MAX;
        begin_marks(turn, DELETION_MARK);
        return true;
    }
    begin_over(work);
    work->record.done = (int64_t)(DONE_ENDED * DELETION_DONE);
    return write_record(turn, false);
}

static bool do_over(struct turn *turn)
{
    struct deletion_work *work = turn->work;
    int64_t now_ms = 0;
    if (!redis_now_ms(turn, &now_ms)) {
        return false;
    }
    /* An instant further ahead than any is set shows that Redis's clock was set back.  Then the
     * deletion is over, and entries count as arrived at its instant until the clock is there. */
    bool is_set_back = now_ms < work->record.until_ms - (AHEAD_MS << LATE_MAX);
    if (now_ms < work->record.until_ms && !is_set_back) {
        turn->until_ms = 0; /* nothing can be done before the instant */
        return true;
    }
    if (work->partition < turn->core->partitions.n) {
        return check_end(turn);
    }
    if (!write_record(turn, true)) {
        return false;
    }
    begin_again(work);
    return true;
}

static bool do_step(struct turn *turn)
{
    enum deletion_phase phase = turn->work->phase;
    /* A sweep and a search find out by themselves whether a partition has gone back. */
    bool has_begun = phase == DELETION_MARK || phase == DELETION_END || phase == DELETION_OVER;
    if (has_begun && has_reconnected(turn)) {
        begin_again(turn->work);
    }
    turn->is_reading = turn->work->phase == DELETION_ORPHANS;
    switch (turn->work->phase) {
    case DELETION_NONE:
        return look_at_list(turn);
    case DELETION_MARK:
        return do_mark(turn);
    case DELETION_SWEEP:
        return do_sweep(turn);
    case DELETION_END:
        return do_end(turn);
    case DELETION_OVER:
        return do_over(turn);
    case DELETION_ORPHANS:
        return end_orphan(turn);
    }
    return false;
}

/* Work until the turn is over.  Returns how many ms to wait before the next one. */
static int64_t work_on(struct turn *turn)
{
    struct deletion_work *work = turn->work;
    bool is_due = deletions_look_due(&turn->core->deletions, monotonic_ms());
    do {
        bool learnt = !is_due || deletion_list_learn(turn->core, &turn->pipe);
        is_due = false;
        if (!learnt || !do_step(turn)) {
            work->in_doubt = turn->pipe.lost && work->phase != DELETION_NONE && !turn->is_reading;
            orphans_after_fault(work, turn->pipe.err);
            work->phase = DELETION_NONE; /* from the record, if this process still leads */
            work->look_ms = monotonic_ms() + RETRY_MS;
            return RETRY_MS;
        }
    } while (work->phase != DELETION_NONE && monotonic_ms() < turn->until_ms);
    if (work->phase == DELETION_NONE) {
        int64_t wait_ms = work->look_ms - monotonic_ms();
        return wait_ms > 0 ? wait_ms : AGAIN_MS;
    }
    return work->phase == DELETION_OVER ? AGAIN_MS : 1;
}

int64_t deletion_work(struct deletion_work *work, struct core *core, struct session *session,
    int64_t token, bool *ret_lost)
{
    int64_t now_ms = monotonic_ms();
    struct turn turn = {
        .work = work, .core = core, .until_ms = now_ms + TURN_MS, .is_reading = true};
    if (work->token != token) {
        work->token = token;
        begin_again(work);
    }
    if (work->phase == DELETION_NONE && now_ms < work->look_ms) {
        return work->look_ms - now_ms;
    }
    work->in_doubt = false;
    pipeline_init(&turn.pipe, session, now_ms + ASK_MS + TURN_MS);
    int64_t wait_ms = work_on(&turn);
    (void)pipeline_end(&turn.pipe, ret_lost);
    return wait_ms;
}
