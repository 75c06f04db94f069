/* lane.h - exactly-once delivery of write scripts to one partition.
 *
 * Layer: storage, pure (no I/O, no clock): the writer sends and receives, the lane decides.  One
 * owner. Source: storage/write/PROTOCOL.md, "Writing exactly once"; model-checked in Promela
 * (tests/model/lane.pml).
 *
 * A part is what one flush does to one partition, as a whole or not at all.  It has a place in its
 * lane, named by (writer id, sequence number), and keeps it until it is answered for good:
 *
 *              send                      OK
 *     HELD ------------> SENT -----------------------> OK
 *      ^                  |
 *      |  REPLAN, GAP,    |   STALE, FAILED, REFUSED (never in doubt)
 *      +------------------+----------------------------> OVER
 *         retry, lost
 *
 * A part that is OK stays in the lane until its flush is acknowledged: a lost connection sends it
 * again.
 *
 * - At most LANE_WINDOW parts are SENT, always in order, over one connection.
 * - A lost connection makes every part of an unacknowledged flush HELD again; one that had been
 * sent is then in doubt (it may have been applied) and is never given up, only answered.
 * - GAP to a part behind an unanswered one of the same id: again, in order.  GAP to the first
 * unanswered one is final: nothing from it on was or can be applied under this id, so all
 * unanswered parts of the id move, in order, to the end of the lane: under a new id, or, if the
 * lane has one already, under that. Replies to copies sent under the dead id only free the part to
 * be sent again.
 * - So the lane is ordered by (id, sequence number) at all times, and sending in the lane's order
 * is sending in every id's order.
 */
#ifndef STORAGE_WRITE_LANE_H
#define STORAGE_WRITE_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "storage/base/slice.h"

#define LANE_WINDOW    2
#define WRITER_ID_TEXT 32 /* hex digits of 128 random bits */

struct part_user;

enum part_state { PART_HELD, PART_SENT, PART_OK, PART_OVER };

/* Why a part is PART_OVER. */
enum part_fate {
    FATE_NONE,
    FATE_UNKNOWN, /* stale or failed half way: may or may not hold */
    FATE_REFUSED, /* Redis refused it, and nothing of it holds */
    FATE_OOM,     /* the same, for want of memory */
};

struct part {
    struct part *next; /* in the lane */
    void *flush;       /* the writer's */
    unsigned partition;
    int64_t gen_ms;  /* when the flush was made, Redis's clock */
    uint32_t *tasks; /* the writer's: what it does */
    uint32_t n_tasks;
    uint32_t us;             /* rough cost of its script in Redis */
    struct part_unit *units; /* the writer's: what is in it of requests with a key, in order */
    uint32_t n_units;
    struct slice *announces; /* members that its script adds to sets, as last encoded */
    uint32_t n_announces, n_announces_kept; /* kept: entries from an earlier encoding, for reuse */
    struct part_user *users; /* whose bits its script sets, as last encoded: see encode.h */
    uint32_t n_users;

    /* The lane's. */
    enum part_state state;
    enum part_fate fate;
    char writer_id[WRITER_ID_TEXT + 1];
    uint64_t seq;
    uint64_t era;      /* counts the lane's writer ids: this one's */
    uint64_t sent_era; /* that of the copy under way */
    bool in_doubt;     /* was sent over a connection that was lost */
};

struct lane {
    struct part *first, *last;
    char writer_id[WRITER_ID_TEXT + 1];
    uint64_t next_seq;
    uint64_t era;
    unsigned n_sent;
};

/* What the script answered; see write.lua. */
enum part_answer {
    ANSWER_OK,
    ANSWER_AGAIN, /* nothing done: REPLAN, NOSCRIPT, LOADING, BUSY.. */
    ANSWER_GAP,
    ANSWER_STALE,
    ANSWER_REFUSED, /* nothing done, and it is no use to send it again soon: OOM, MISCONF.. */
    ANSWER_OOM,     /* the same, for want of memory */
    ANSWER_FAILED,  /* the script broke off: what it did is unknown */
};

void lane_init(struct lane *lane);

/* Append @part (zeroed but for the writer's fields) at the end. */
void lane_append(struct lane *lane, struct part *part);

/* The next part to send now, or NULL; the caller sends it and calls lane_sent. */
struct part *lane_next(const struct lane *lane);
void lane_sent(struct lane *lane, struct part *part);

/* The reply to the copy of @part that was under way. */
void lane_answered(struct lane *lane, struct part *part, enum part_answer answer);

/* The connection is gone. */
void lane_lost(struct lane *lane);

/* Take @part out: answered for good, or held and never in doubt, so that nothing of it holds. */
void lane_remove(struct lane *lane, struct part *part);

#endif
