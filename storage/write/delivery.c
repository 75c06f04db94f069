#include "storage/write/delivery.h"

#include <stdlib.h>

#include "storage/base/clock.h"
#include "storage/core/reply_fault.h"
#include "storage/seen/fold.h"
#include "storage/write/delivery_answer.h"
#include "storage/write/delivery_direct.h"

#define AGAIN_MS 20 /* after LOADING, BUSY and the like */
#define OUT_KEEP (512 * 1024)

bool delivery_init(struct delivery *d, struct core *core, struct seen_fold *seen_fold)
{
    *d = (struct delivery){.core = core, .seen_fold = seen_fold};
    d->encoder = encoder_new(core, &d->pace);
    for (unsigned p = 0; p < core->partitions.n; p++) {
        lane_init(&d->lanes[p]);
    }
    return d->encoder != NULL;
}

void delivery_release(struct delivery *d)
{
    struct flush *next;
    for (struct flush *flush = d->flushes; flush != NULL; flush = next) {
        next = flush->next;
        flush_free(flush);
    }
    encoder_free(d->encoder);
    free(d->sent.ring);
    buffer_release(&d->out);
}

void delivery_add(struct delivery *d, struct flush *flush)
{
    struct flush **end = &d->flushes;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = flush;
    d->n_flushes++;
    if (flush->n_direct > 0 && !direct_fits(d->core, &d->pace, flush)) {
        direct_bounce_all(flush, false);
    }
    for (size_t i = 0; i < flush->n_parts; i++) {
        lane_append(&d->lanes[flush->parts[i].partition], &flush->parts[i]);
    }
}

int64_t delivery_deadline_ms(const struct delivery *d)
{
    int64_t next = INT64_MAX;
    for (const struct flush *flush = d->flushes; flush != NULL; flush = flush->next) {
        if (flush->jobs != NULL && flush->jobs->deadline_ms < next) {
            next = flush->jobs->deadline_ms;
        }
    }
    return next;
}

struct flush *delivery_take_done(struct delivery *d)
{
    struct flush *finished = NULL;
    struct flush **end = &finished;
    struct flush **at = &d->flushes;
    while (*at != NULL) {
        struct flush *flush = *at;
        if (!flush_is_finished(flush)) {
            at = &flush->next;
            continue;
        }
        *at = flush->next;
        d->n_flushes--;
        flush->next = NULL;
        *end = flush;
        end = &flush->next;
        for (size_t i = 0; i < flush->n_parts; i++) {
            lane_remove(&d->lanes[flush->parts[i].partition], &flush->parts[i]);
        }
    }
    return finished;
}

void delivery_finish(struct delivery *d, struct flush *done)
{
    while (done != NULL) {
        struct flush *next = done->next;
        flush_answer(d->core, done);
        done = next;
    }
}

void delivery_answer_late(struct delivery *d, int64_t now_ms)
{
    for (struct flush *flush = d->flushes; flush != NULL; flush = flush->next) {
        flush_answer_late(d->core, flush, now_ms);
    }
}

/* ---- sending ---- */

static bool push_sent(struct sent_parts *sent, struct part *part)
{
    if (sent->n == sent->capacity) {
        size_t capacity = sent->capacity == 0 ? 64 : sent->capacity * 2;
        struct sent_part *ring = malloc(capacity * sizeof(*ring));
        if (ring == NULL) {
            return false;
        }
        for (size_t i = 0; i < sent->n; i++) {
            ring[i] = sent->ring[(sent->head + i) & (sent->capacity - 1)];
        }
        free(sent->ring);
        *sent = (struct sent_parts){.ring = ring, .n = sent->n, .capacity = capacity};
    }
    sent->ring[(sent->head + sent->n++) & (sent->capacity - 1)] = (struct sent_part){.part = part};
    return true;
}

static struct sent_part pop_sent(struct sent_parts *sent)
{
    struct sent_part part = sent->ring[sent->head];
    sent->head = (sent->head + 1) & (sent->capacity - 1);
    sent->n--;
    return part;
}

/* The script is complete: the part that was pushed last is its last one. */
static bool end_script(struct delivery *d, const struct session *session)
{
    struct sent_parts *sent = &d->sent;
    size_t before = d->out.n;
    bool ok = encode_end(d->encoder, &session->scripts, &d->out);
    if (sent->n > 0) {
        struct sent_part *last = &sent->ring[(sent->head + sent->n - 1) & (sent->capacity - 1)];
        last->last = true;
        last->script_us = encode_us(d->encoder);
        last->script_bytes = d->out.n - before;
        d->sent_us += last->script_us;
        d->sent_scripts++;
    }
    d->scripts++;
    return ok;
}

/* While somebody asks, is so much under way that the rest must wait?  Redis runs all scripts that
 * it has been sent one after the other before it looks at anybody else.  So questions would wait
 * for all of a large flush; now they wait for the script at hand, and for the next one, which is
 * there when it is done. */
static bool is_enough(const struct delivery *d)
{
    return atomic_load(&d->core->questions) > 0 && d->sent_scripts >= 2 &&
           d->sent_us >= pace_limit_us(&d->pace);
}

/* Could all parts of @flush be sent now? */
static bool is_next(const struct delivery *d, const struct flush *flush)
{
    for (size_t i = 0; i < flush->n_parts; i++) {
        if (lane_next(&d->lanes[flush->parts[i].partition]) != &flush->parts[i]) {
            return false;
        }
    }
    return true;
}

/* Flushes with direct requests go as a whole, each in a script of its own. */
static bool pump_direct(struct delivery *d, const struct session *session)
{
    for (struct flush *flush = d->flushes; flush != NULL; flush = flush->next) {
        if (flush->n_direct == 0 || !is_next(d, flush)) {
            continue;
        }
        if (is_enough(d)) {
            return true;
        }
        encode_begin(d->encoder);
        encode_direct(d->encoder, flush);
        for (size_t i = 0; i < flush->n_parts; i++) {
            struct part *part = &flush->parts[i];
            struct partition_view view = core_view(d->core, part->partition);
            if (!encode_add(d->encoder, part, &view) || !push_sent(&d->sent, part)) {
                return false;
            }
            lane_sent(&d->lanes[part->partition], part);
        }
        d->sent.ring[(d->sent.head + d->sent.n - 1) & (d->sent.capacity - 1)].direct = true;
        if (!end_script(d, session)) {
            return false;
        }
    }
    return true;
}

/* The next part of the partition that may go now and is not direct. */
static struct part *next_part(struct delivery *d, unsigned partition)
{
    struct part *part = lane_next(&d->lanes[partition]);
    return part != NULL && ((const struct flush *)part->flush)->n_direct == 0 ? part : NULL;
}

/* The parts of all others, as their lanes let them.  Who had to wait comes first the next time. */
static bool pump_parts(struct delivery *d, const struct session *session)
{
    unsigned first = d->turn;
    bool any = false; /* in the script at hand */
    if (is_enough(d)) {
        return true;
    }
    encode_begin(d->encoder);
    for (unsigned i = 0; i < d->core->partitions.n; i++) {
        unsigned p = (first + i) % d->core->partitions.n;
        struct partition_view view = core_view(d->core, p);
        struct part *part;
        while ((part = next_part(d, p)) != NULL) {
            if (!encode_has_room(d->encoder, part)) {
                if (!end_script(d, session)) {
                    return false;
                }
                encode_begin(d->encoder);
                if (is_enough(d)) {
                    d->turn = p;
                    return true;
                }
            }
            if (!encode_add(d->encoder, part, &view) || !push_sent(&d->sent, part)) {
                return false;
            }
            lane_sent(&d->lanes[p], part);
            any = true;
        }
    }
    return !any || end_script(d, session);
}

bool delivery_pump(struct delivery *d, const struct session *session, int64_t now_ms)
{
    buffer_clear(&d->out, OUT_KEEP);
    d->scripts = 0;
    if (now_ms < d->hold_until_ms) {
        return true;
    }
    /* What is direct may wait for others in front of it, and others for it. */
    return pump_direct(d, session) && pump_parts(d, session) && pump_direct(d, session);
}

void delivery_lost(struct delivery *d)
{
    encode_forget(d->encoder);
    atomic_fetch_add(&d->core->stats.resent, (int64_t)d->sent.n);
    d->sent.n = 0;
    d->sent_us = 0;
    d->sent_scripts = 0;
    d->hold_until_ms = 0;
    for (struct flush *flush = d->flushes; flush != NULL; flush = flush->next) {
        for (size_t i = 0; i < flush->n_parts; i++) {
            part_units_forget(flush->parts[i].units, flush->parts[i].n_units);
        }
        /* whether it was applied, its record tells */
        direct_bounce_all(flush, flush_was_sent(flush));
    }
    for (unsigned p = 0; p < d->core->partitions.n; p++) {
        lane_lost(&d->lanes[p]);
    }
}

/* ---- replies ---- */

/* An error reply: the script did not run, or (unknown errors) may have broken off. */
static enum part_answer error_answer(
    struct delivery *d, const struct part *part, const struct reply *reply, bool *ret_lost)
{
    atomic_fetch_add(&d->core->stats.redis_errors, 1);
    enum reply_fault fault = reply_fault(reply);
    if (fault == REPLY_RECONNECT) {
        *ret_lost = true;
        return ANSWER_AGAIN;
    }
    if (fault == REPLY_LATER) {
        d->hold_until_ms = monotonic_ms() + AGAIN_MS;
        core_write_failed(d->core, STORAGE_REFUSED);
        return ANSWER_AGAIN;
    }
    core_notice(d->core, STORAGE_REFUSING, reply->text.p);
    core_write_failed(d->core, fault == REPLY_FULL ? STORAGE_OOM : STORAGE_REFUSED);
    enum part_answer answer = ANSWER_FAILED;
    if (fault == REPLY_FULL) {
        answer = ANSWER_OOM;
    } else if (reply_is_error(reply, "MISCONF") || reply_is_error(reply, "NOREPLICAS") ||
               reply_is_error(reply, "NOPERM")) {
        answer = ANSWER_REFUSED;
    }
    if (part->in_doubt) {
        d->hold_until_ms = monotonic_ms() + AGAIN_MS; /* it is sent until it is answered */
    }
    return answer;
}

static enum part_answer replan(
    struct delivery *d, const struct part *part, const struct reply *st, bool *ret_lost)
{
    struct partition_view view = core_view(d->core, part->partition);
    atomic_fetch_add(&d->core->stats.replanned, 1);
    if (!rollup_state_parse(st->text, &view.state)) {
        *ret_lost = true;
        return ANSWER_AGAIN;
    }
    view.known = true;
    core_set_view(d->core, part->partition, &view);
    return ANSWER_AGAIN;
}

/* What the script says of one part: a code, and with REPLAN the state. */
static enum part_answer read_code(struct delivery *d, struct part *part, const struct reply *code,
    const struct reply *st, bool *ret_lost)
{
    int64_t what = reply_integer(code, -1);
    if (what != 0 && what != 1 && what != 6 && what != 8) {
        direct_bounce_all(part->flush, false);
    }
    switch (what) {
    case 8: /* held back by another one */
        return ANSWER_AGAIN;
    case 0:
        encode_applied(d->encoder, part, st);
        if (st->type == REPLY_ARRAY && st->n > 0 && st->items[0].text.n > 0) {
            seen_fold_due(d->seen_fold, part->partition, st->items[0].text);
        }
        return ANSWER_OK;
    case 1:
        return replan(d, part, st, ret_lost);
    case 2:
        encode_forget(d->encoder); /* the data may have gone back */
        part_units_forget(part->units, part->n_units);
        return ANSWER_GAP;
    case 3:
        if (part->in_doubt) {
            return ANSWER_STALE;
        }
        /* Its only copy did nothing: Redis's clock was set forward since the flush was made. */
        part->gen_ms = redis_clock_ms(&d->core->clock);
        return ANSWER_AGAIN;
    case 6: /* a user was forgotten: once more, by name */
        encode_forget_users(d->encoder, part->partition);
        return ANSWER_AGAIN;
    case 7:
        atomic_fetch_add(&d->core->stats.keyed_again, 1);
        *ret_lost = !part_units_take(part->units, part->n_units, st->text) || *ret_lost;
        return ANSWER_AGAIN;
    case 4: /* other settings, or (5) emptied under our feet: look again, from the start */
    case 5:
    default:
        *ret_lost = true;
        return ANSWER_AGAIN;
    }
}

bool delivery_take_reply(struct delivery *d, const struct reply *reply)
{
    bool lost = d->sent.n == 0; /* an answer nobody asked for */
    bool last = lost;
    bool codes = reply->type == REPLY_ARRAY && reply->n >= 5;
    if (codes) {
        core_time_seen(d->core,
            reply_integer(&reply->items[0], 0) * 1000000 + reply_integer(&reply->items[1], 0));
    }
    for (size_t i = 3; !last; i += 2) {
        struct sent_part sent = pop_sent(&d->sent);
        struct part *part = sent.part;
        enum part_answer answer = ANSWER_FAILED;
        if (reply->type == REPLY_ERROR) {
            answer = error_answer(d, part, reply, &lost);
        } else if (codes && i + 1 < reply->n) {
            answer = read_code(d, part, &reply->items[i], &reply->items[i + 1], &lost);
        } else {
            lost = true; /* not what write.lua answers */
        }
        lane_answered(&d->lanes[part->partition], part, answer);
        last = sent.last;
        d->sent_us -= sent.script_us;
        d->sent_scripts -= sent.last;
        if (last && codes) {
            pace_learn(
                &d->pace, sent.script_us, sent.script_bytes, reply_integer(&reply->items[2], 0));
        }
        if (sent.direct && codes && i + 2 < reply->n) {
            lost = !direct_take_used(part->flush, reply->items[i + 2].text) || lost;
        }
    }
    return !lost;
}
