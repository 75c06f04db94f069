#include "storage/log/append.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/clock.h"
#include "storage/base/random_id.h"
#include "storage/log/acknowledge.h"
#include "storage/log/record.h"
#include "storage/redis/ask.h"
#include "storage/redis/resp.h"
#include "storage/session/replicated.h"
#include "storage/session/reply_fault.h"

#define AGAIN_MS 20 /* an entry goes again so long after LOADING, BUSY and the like */

/* What append.lua answers. */
enum append_code { APPEND_OK, APPEND_DUP, APPEND_GAP, APPEND_GONE };

void appender_init(struct appender *a, struct core *core, unsigned place, struct unfolded *unfolded)
{
    *a = (struct appender){.core = core,
        .unfolded = unfolded,
        .place = place,
        .partition = core_log_partition(core, place),
        .next_n = 1,
        .wrote_ms = INT64_MIN};
    standing_init(&a->standing, false);
}

struct standing *append_standing(struct appender *a)
{
    return a->core->is_spread ? &a->standing : &a->core->standing;
}

void appender_release(struct appender *a)
{
    while (a->first != NULL) {
        struct log_entry *next = a->first->next;
        entry_release(a->first);
        a->first = next;
    }
    for (size_t i = 0; i < a->n_awaited; i++) {
        entry_release(a->sent[a->sent_first + i].entry);
    }
    free(a->sent);
    buffer_release(&a->out);
    entry_scratch_release(&a->scratch);
}

/* ---- replies ---- */

/* The record of the entry's request number @i with a key, which follows the code and the time. */
static struct slice record_in(const struct reply *reply, size_t i)
{
    return 3 + i < reply->n ? reply->items[3 + i].text : SLICE("");
}

/* Take what the records of an entry's requests with a key say.  The last answer decides what a
 * client is told.  What of the entry counts is decided by the first answer alone: from then on
 * folds share the entry, and take it from memory under that answer's era only. */
static void take_records(struct log_entry *entry, const struct reply *reply, bool is_first)
{
    for (size_t i = 0; i < entry->n_keyed; i++) {
        struct entry_keyed *keyed = &entry->keyed[i];
        keyed->outcome = record_judge(record_in(reply, i), entry, i);
        if (is_first) {
            keyed->is_in = keyed->outcome == KEY_MINE;
        }
    }
    for (struct storage_job *job = entry->jobs; job != NULL; job = job->next) {
        struct request_key *key = job->u.write.keyed;
        if (key != NULL) {
            bool ok = record_tell(
                record_in(reply, key->in_entry), entry->keyed[key->in_entry].outcome, key);
            job->err = ok ? STORAGE_OK : STORAGE_NOMEM;
        }
    }
}

/* The entry is in Redis: OK, or DUP. */
static void take_appended(struct appender *a, struct log_entry *entry, const struct reply *reply)
{
    bool first_time = entry->era[0] == '\0';
    entry->state = ENTRY_ANSWERED;
    entry->answered_ms = monotonic_ms();
    a->open = entry->next; /* answers come in order, and so do entries in Redis */
    if (a->told_refusal) {
        a->told_refusal = false;
        core_notice(a->core, STORAGE_TAKES_WRITES, "");
    }
    take_records(entry, reply, first_time);
    if (!first_time) {
        atomic_fetch_add(&a->core->stats.appends_repeated, 1);
        return;
    }
    entry->acknowledged_us = monotonic_us();
    held_show(a);
    atomic_fetch_add(&a->core->stats.appends, 1);
    atomic_fetch_add(&a->core->stats.append_events, (int64_t)entry_events(entry));
    atomic_fetch_add(&a->core->stats.append_us, monotonic_us() - entry->sent_us);
    memcpy(entry->era, a->era, sizeof(entry->era));
    if (!replicated_before_folded(a->core)) {
        acknowledge_let_fold(a, entry);
    }
}

/* Nothing of the entry was done by the command that was just answered. */
static void was_refused(struct appender *a, const struct log_entry *entry)
{
    if (!entry->on_lost) {
        unfolded_hides(a->unfolded, a->place, entry->n);
    }
}

static void take_gap(struct appender *a, struct log_entry *entry)
{
    a->is_taking = false;
    entry->state = ENTRY_WAITING; /* as a rule an entry before this one goes again, too */
    was_refused(a, entry);
    if (entry == a->first && !a->may_jump) {
        a->may_jump = true;
        atomic_fetch_add(&a->core->stats.log_jumps, 1);
    }
}

/* The entry is in Redis, but an entry before it was refused: a late copy of that one came in
 * between.  Entries are answered in order, so this one goes again, behind the other. */
static void take_early(struct log_entry *entry)
{
    entry->state = ENTRY_WAITING;
    entry->on_lost = true; /* so the entry is not given up */
}

/* Redis has answered an error: as a rule the script did not run.  False: the connection must be
 * given up. */
static bool take_error(struct appender *a, struct log_entry *entry, const struct reply *reply)
{
    bool lost = false;
    enum storage_err err = reply_err(reply, &lost);
    entry->state = ENTRY_WAITING;
    a->is_taking = false;
    atomic_fetch_add(&a->core->stats.redis_errors, 1);
    if (lost) {
        return false;
    }
    a->hold_until_ms = monotonic_ms() + AGAIN_MS;
    core_write_failed(a->core, err);
    if (reply_fault(reply) == REPLY_FAILED) { /* the script may have broken off: its repeat tells */
        entry->on_lost = true;
    }
    was_refused(a, entry);
    if (err != STORAGE_DOWN) {
        core_notice(a->core, STORAGE_REFUSING, reply->text.p);
        a->refusal = err;
        a->told_refusal = true;
    }
    return true;
}

static bool take_append(struct appender *a, struct log_entry *entry, const struct reply *reply)
{
    a->n_sent--;
    if (reply->type == REPLY_ERROR) {
        return take_error(a, entry, reply);
    }
    if (reply->type != REPLY_ARRAY || reply->n < 3) {
        return false;
    }
    if (reply->items[1].type == REPLY_INTEGER) {
        core_time_of(a->core, a->partition,
            reply_integer(&reply->items[1], 0) * 1000000 + reply_integer(&reply->items[2], 0));
    }
    switch (reply_integer(&reply->items[0], -1)) {
    case APPEND_OK:
    case APPEND_DUP:
        if (entry != a->open) {
            take_early(entry);
            return true;
        }
        a->may_jump = entry == a->first ? false : a->may_jump;
        a->is_taking = true;
        take_appended(a, entry, reply);
        acknowledge_or_keep(a);
        return true;
    case APPEND_GAP:
        take_gap(a, entry);
        return true;
    case APPEND_GONE:
        entry->state = ENTRY_WAITING;
        a->is_gone = true;
        return true;
    default:
        return false;
    }
}

/* The log's id is dead, and no command is under way: a new log begins.  What was acknowledged was
 * counted before the log was closed, or is lost with all data.
 *
 * An entry goes into the new log if it was never on a lost connection: then the old log does not
 * have it.  Any other entry is in doubt, because the log that could tell is gone: the entry may
 * have been counted.  All its requests end with STORAGE_UNKNOWN (504), also those with a key.  A
 * 504 says that a request counts now, later or never, and that is true here.  The client that
 * repeats the request with its key asks the record, and counts once.  So this writer need not try
 * on the client's behalf. */
static void begin_again(struct appender *a)
{
    struct log_entry *next;
    acknowledge_kept(a);
    struct log_entry *held = a->first;
    a->first = a->last = a->open = a->unacknowledged = a->unsafe = NULL;
    a->next_n = 1;
    a->id[0] = '\0';
    a->is_gone = a->may_jump = false;
    atomic_fetch_add(&a->core->stats.logs_gone, 1);
    for (; held != NULL; held = next) {
        next = held->next;
        held_forget(a, held);
        bool again = held->state != ENTRY_ANSWERED && !held->on_lost && held->era[0] == '\0';
        if (!again) {
            atomic_fetch_add(&a->core->stats.entries_in_doubt, held->era[0] == '\0');
            appender_mark_all_done(a, held, STORAGE_UNKNOWN);
            entry_release(held);
            continue;
        }
        held->n = a->next_n++;
        held_append(a, held);
    }
    held_show(a); /* no entry that was answered is left */
}

bool appender_take_reply(struct appender *a, const struct reply *reply)
{
    if (a->n_awaited == 0) {
        return false; /* no command waits for this reply */
    }
    struct append_sent sent = a->sent[a->sent_first++];
    a->n_awaited--;
    standing_answered(append_standing(a), sent.sent_ms);
    bool ok = true;
    if (sent.command == COMMAND_APPEND) {
        ok = take_append(a, sent.entry, reply);
    } else if (sent.command == COMMAND_HEARTBEAT && reply->type == REPLY_INTEGER) {
        a->is_gone = a->is_gone || reply->integer == 0;
        a->wrote_ms = sent.sent_ms;
    } else if (sent.command == COMMAND_WAIT) {
        ok = acknowledge_take_wait(a, reply, sent.sent_ms);
    }
    entry_release(sent.entry);
    bool gives_up = ok && a->refusal != STORAGE_OK && a->n_sent == 0;
    while (gives_up && appender_give_up_last(a, a->refusal)) {
    }
    a->refusal = a->n_sent == 0 ? STORAGE_OK : a->refusal;
    if (ok && a->is_gone && a->n_awaited == 0) {
        begin_again(a);
        ok = false; /* the next connection registers the new log */
    }
    return ok;
}

void appender_lost(struct appender *a)
{
    acknowledge_kept(a);
    standing_end(append_standing(a));
    a->is_taking = false;
    a->wrote_ms = INT64_MIN;
    for (size_t i = 0; i < a->n_awaited; i++) {
        entry_release(a->sent[a->sent_first + i].entry);
    }
    a->n_awaited = a->sent_first = a->n_sent = a->n_waits = 0;
    a->hold_until_ms = a->lag_ms = 0;
    for (struct log_entry *e = a->first; e != NULL; e = e->next) {
        e->on_lost = e->on_lost || e->state != ENTRY_WAITING;
        e->state = ENTRY_WAITING;
    }
    /* The next connection may lead to another server, with other replicas. */
    a->open = a->unacknowledged = a->unsafe = a->first;
    if (a->is_gone) {
        begin_again(a);
    }
    appender_answer_done(a); /* these jobs need not wait for the next connection */
}

/* ---- a connection ---- */

/* Register the log @id.  A full Redis takes that, too: else the writer would have no connection,
 * and no question would be answered.  False: session->why says why. */
static bool register_log(
    struct appender *a, const char *id, struct session *session, int64_t deadline_ms)
{
    char head[64];
    const struct reply *reply = NULL;
    (void)snprintf(
        head, sizeof(head), "0 %s %lld", a->era, (long long)redis_clock_ms(&a->core->clock));
    buffer_clear(&a->out, APPEND_OUT_KEPT);
    script_head(&a->out, &session->scripts, SCRIPT_SMALL_WRITE, 1, 3);
    append_put_key(a, "heads", "");
    resp_text(&a->out, "HSETNX");
    resp_text(&a->out, id);
    resp_text(&a->out, head);
    enum redis_status status = redis_ask(session->redis, &a->out, deadline_ms, &reply);
    if (status == REDIS_OK_STATUS && reply_integer(reply, 0) == 1) {
        return true;
    }
    const char *why =
        status != REDIS_OK_STATUS ? redis_status_text(status) : reply_complaint(reply);
    (void)snprintf(session->why, sizeof(session->why), "%s", why);
    return false;
}

bool appender_connected(struct appender *a, struct session *session, int64_t deadline_ms)
{
    random_id(a->era, sizeof(a->era));
    a->beat_ms = monotonic_ms();
    if (a->id[0] != '\0') {
        standing_begin(append_standing(a), a->beat_ms);
        return true;
    }
    char id[LOG_ID_TEXT + 1];
    random_id(id, sizeof(id));
    if (!register_log(a, id, session, deadline_ms)) {
        return false; /* the id is not used again: an answer may be lost, the registration not */
    }
    memcpy(a->id, id, sizeof(a->id));
    standing_begin(append_standing(a), a->beat_ms);
    unfolded_begin(a->unfolded, a->place, id);
    for (struct log_entry *e = a->first; e != NULL; e = e->next) {
        memcpy(e->id, id, sizeof(e->id));
    }
    return true;
}
