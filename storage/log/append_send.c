/* append_send.c - which commands of an appender go out, and how they are encoded. */
#include <string.h>

#include "storage/base/clock.h"
#include "storage/base/index.h"
#include "storage/log/acknowledge.h"
#include "storage/log/append.h"
#include "storage/log/append_state.h"
#include "storage/log/record.h"
#include "storage/redis/resp.h"
#include "storage/schema/first_note.h"
#include "storage/schema/key.h"

/* Of entries that were sent before, at most so many are under way, and about so many bytes. */
#define RESENT_MAX   64
#define RESENT_BYTES ((size_t)1024 * 1024)

#define WAIT_MS  100  /* a WAIT lasts so long at most: entries behind it have to wait, too */
#define BEAT_MS  5000 /* the pause between two heartbeats */
#define PROOF_MS 250  /* the same while entries are held, or standing.h is asked for a proof */

/* The command that was just encoded waits for a reply.  False: out of memory. */
static bool note_sent(
    struct appender *a, enum append_command command, struct log_entry *entry, int64_t now_ms)
{
    if (a->sent_first > 0 && a->sent_first + a->n_awaited == a->sent_capacity) {
        memmove(a->sent, a->sent + a->sent_first, a->n_awaited * sizeof(*a->sent));
        a->sent_first = 0;
    }
    if (!array_reserve(
            &a->sent, &a->sent_capacity, a->sent_first + a->n_awaited, sizeof(*a->sent))) {
        return false;
    }
    a->sent[a->sent_first + a->n_awaited++] =
        (struct append_sent){command, entry == NULL ? NULL : entry_reference(entry), now_ms};
    a->n_out++;
    return true;
}

void append_put_key(struct appender *a, const char *name, const char *suffix)
{
    struct key key;
    resp_slice(
        &a->out, key_fixed(&key, a->core->partitions.tag[a->partition], name, slice_of(suffix)));
}

static void put_append(struct appender *a, const struct session *session, struct log_entry *entry)
{
    uint8_t head[ENTRY_HEAD];
    struct key key;
    entry_print_head(entry, head);
    script_head(
        &a->out, &session->scripts, SCRIPT_APPEND, 2 + entry->n_keyed, 6 + 3 * entry->n_keyed);
    append_put_key(a, "heads", "");
    append_put_key(a, "log:", entry->id);
    for (size_t i = 0; i < entry->n_keyed; i++) {
        resp_slice(
            &a->out, key_record(&key, a->core->partitions.tag[a->partition], &entry->keyed[i].key));
    }
    resp_text(&a->out, entry->id);
    resp_decimal(&a->out, (int64_t)entry->n);
    resp_text(&a->out, a->era);
    resp_text(&a->out, a->may_jump && entry == a->first ? "1" : "");
    resp_word(&a->out, head, sizeof(head));
    resp_word(&a->out, entry->packed.p, entry->packed.n);
    for (size_t i = 0; i < entry->n_keyed; i++) {
        record_put(&a->out, entry, i);
        resp_decimal(&a->out, entry->keyed[i].is_ticketed ? FIRST_NOTE_KEYED_MS : RECORD_TTL_MS);
        resp_slice(&a->out, entry->keyed[i].chunk);
    }
}

static size_t bytes_under_way(const struct appender *a)
{
    size_t n = 0;
    for (size_t i = 0; i < a->n_awaited; i++) {
        const struct log_entry *entry = a->sent[a->sent_first + i].entry;
        n += entry == NULL ? 0 : entry_bytes(entry);
    }
    return n;
}

/* May @entry be sent now?  Few new entries are under way at a time, so that they gather requests.
 * Entries of a lost connection go in one stream, because no new request is acknowledged before all
 * of them are there.  A server that refuses entries gets few. */
static bool may_send(const struct appender *a, const struct log_entry *entry)
{
    return a->n_sent < UNDER_WAY_MAX || (a->is_taking && entry->on_lost && a->n_sent < RESENT_MAX &&
                                            bytes_under_way(a) < RESENT_BYTES);
}

static bool send_entries(struct appender *a, const struct session *session, int64_t now_ms)
{
    for (struct log_entry *e = a->open; e != NULL; e = e->next) {
        if (e->state != ENTRY_WAITING) {
            continue;
        }
        if (!may_send(a, e)) {
            break; /* entries go in order */
        }
        if (e->n_keyed > 0) {
            unfolded_shows(a->unfolded, a->place, e->n);
        }
        put_append(a, session, e);
        if (!note_sent(a, COMMAND_APPEND, e, now_ms)) {
            return false;
        }
        e->state = ENTRY_SENT;
        e->sent_us = monotonic_us();
        a->n_sent++;
    }
    return true;
}

/* When the next heartbeat is due, CLOCK_MONOTONIC. */
static int64_t beat_due_ms(struct appender *a)
{
    int64_t wanted_ms = standing_wanted_ms(append_standing(a));
    bool is_wanted = wanted_ms != INT64_MIN;
    bool holds =
        a->first != NULL && (atomic_load(&a->core->go_back_ms) > 0 || a->core->hold_ms > 0);
    int64_t due_ms = a->beat_ms + (is_wanted || holds ? PROOF_MS : BEAT_MS);
    return is_wanted && wanted_ms > a->beat_ms && wanted_ms < due_ms ? wanted_ms : due_ms;
}

/* Send a heartbeat, if it is due: it keeps the log from being closed.  Its answer proves which held
 * entries are safe, and that Redis has not gone back, for those who want to know (core/standing.h).
 */
static bool send_heartbeat(struct appender *a, const struct session *session, int64_t now_ms)
{
    if (now_ms < beat_due_ms(a)) {
        return true;
    }
    a->beat_ms = now_ms;
    script_head(&a->out, &session->scripts, SCRIPT_HEARTBEAT, 1, 1);
    append_put_key(a, "heads", "");
    resp_text(&a->out, a->id);
    return note_sent(a, COMMAND_HEARTBEAT, NULL, now_ms);
}

/* Send a WAIT, if it is due, for all that was written before. */
static bool send_wait(struct appender *a, int64_t now_ms)
{
    if (!acknowledge_wait_is_due(a)) {
        return true;
    }
    a->n_waits++;
    resp_head(&a->out, 3);
    resp_text(&a->out, "WAIT");
    resp_decimal(&a->out, a->core->config.ack_replicas);
    resp_decimal(&a->out, WAIT_MS);
    return note_sent(a, COMMAND_WAIT, NULL, now_ms);
}

bool appender_pump(struct appender *a, const struct session *session, int64_t now_ms)
{
    buffer_clear(&a->out, APPEND_OUT_KEPT);
    a->n_out = 0;
    if (a->id[0] == '\0' || a->is_gone || now_ms < a->hold_until_ms) {
        return true;
    }
    return send_entries(a, session, now_ms) && send_heartbeat(a, session, now_ms) &&
           send_wait(a, now_ms) && !a->out.failed;
}

int64_t appender_due_ms(struct appender *a, int64_t now_ms)
{
    return a->is_gone ? INT64_MAX : now_ms < a->hold_until_ms ? a->hold_until_ms : beat_due_ms(a);
}
