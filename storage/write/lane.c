#include "storage/write/lane.h"

#include <assert.h>
#include <sodium.h>
#include <stddef.h>
#include <string.h>

static void new_id(struct lane *lane)
{
    unsigned char bytes[WRITER_ID_TEXT / 2];
    randombytes_buf(bytes, sizeof(bytes));
    sodium_bin2hex(lane->writer_id, sizeof(lane->writer_id), bytes, sizeof(bytes));
    lane->next_seq = 1;
    lane->era++;
}

static void number(struct lane *lane, struct part *part)
{
    memcpy(part->writer_id, lane->writer_id, sizeof(part->writer_id));
    part->seq = lane->next_seq++;
    part->era = lane->era;
}

void lane_init(struct lane *lane)
{
    *lane = (struct lane){0};
    new_id(lane);
}

static void link_last(struct lane *lane, struct part *part)
{
    part->next = NULL;
    if (lane->last == NULL) {
        lane->first = part;
    } else {
        lane->last->next = part;
    }
    lane->last = part;
}

static void unlink_part(struct lane *lane, struct part *part)
{
    struct part *before = NULL;
    for (struct part *p = lane->first; p != part; p = p->next) {
        before = p;
    }
    if (before == NULL) {
        lane->first = part->next;
    } else {
        before->next = part->next;
    }
    if (lane->last == part) {
        lane->last = before;
    }
    part->next = NULL;
}

void lane_append(struct lane *lane, struct part *part)
{
    part->state = PART_HELD;
    number(lane, part);
    link_last(lane, part);
}

struct part *lane_next(const struct lane *lane)
{
    if (lane->n_sent >= LANE_WINDOW) {
        return NULL;
    }
    for (struct part *part = lane->first; part != NULL; part = part->next) {
        if (part->state == PART_HELD) {
            return part;
        }
    }
    return NULL;
}

void lane_sent(struct lane *lane, struct part *part)
{
    assert(part->state == PART_HELD);
    part->state = PART_SENT;
    part->sent_era = part->era;
    lane->n_sent++;
}

static bool answered(const struct part *part)
{
    return part->state == PART_OK || part->state == PART_OVER;
}

/* Among those of its id. */
static bool is_first_unanswered(const struct lane *lane, const struct part *part)
{
    for (const struct part *p = lane->first; p != part; p = p->next) {
        if (p->era == part->era && !answered(p)) {
            return false;
        }
    }
    return true;
}

/* The id of @dead is of no use from its first unanswered part on: all of them go, in order, to the
 * end.  A copy that is still under way under the dead id will be answered with nothing done. */
static void move(struct lane *lane, uint64_t dead)
{
    struct part *end = lane->last;
    struct part *next;
    bool more = true;
    if (dead == lane->era) {
        new_id(lane);
    }
    for (struct part *p = lane->first; more && p != NULL; p = next) {
        next = p->next;
        more = p != end;
        if (p->era == dead && !answered(p)) {
            unlink_part(lane, p);
            number(lane, p);
            link_last(lane, p);
        }
    }
}

static void over(struct part *part, enum part_fate fate)
{
    part->state = PART_OVER;
    part->fate = fate;
}

void lane_answered(struct lane *lane, struct part *part, enum part_answer answer)
{
    assert(part->state == PART_SENT);
    bool current = part->sent_era == part->era;
    lane->n_sent--;
    part->state = PART_HELD;
    switch (answer) {
    case ANSWER_OK:
        part->state = part->fate == FATE_UNKNOWN ? PART_OVER : PART_OK;
        break;
    case ANSWER_AGAIN:
        break;
    case ANSWER_GAP:
        if (current && is_first_unanswered(lane, part)) {
            move(lane, part->era);
        }
        break;
    case ANSWER_STALE:
        over(part, FATE_UNKNOWN);
        break;
    case ANSWER_REFUSED:
    case ANSWER_OOM:
        if (!part->in_doubt) {
            over(part,
                answer == ANSWER_OOM
                    ? FATE_OOM
                    : FATE_REFUSED); /* its number stays unused: who follows gets GAP, and moves */
        }
        break;
    case ANSWER_FAILED:
        if (part->in_doubt) {
            part->fate =
                FATE_UNKNOWN; /* held until the marker, or STALE, says that no lost copy can run */
        } else {
            over(part, FATE_UNKNOWN);
        }
        break;
    }
}

void lane_lost(struct lane *lane)
{
    for (struct part *p = lane->first; p != NULL; p = p->next) {
        if (p->state == PART_SENT || p->state == PART_OK) {
            p->state = PART_HELD;
            p->in_doubt = true;
        }
    }
    lane->n_sent = 0;
}

void lane_remove(struct lane *lane, struct part *part)
{
    assert(answered(part) || (part->state == PART_HELD && !part->in_doubt));
    unlink_part(lane, part);
}
