/* delivery.h - flushes under way: sent in order, answered, sent again after a loss.
 *
 * Layer: storage.  Belongs to the writer's thread.  No I/O of its own: the writer moves the bytes.
 * Each part of a flush goes through its partition's lane (lane.h), which decides what is sent when;
 * replies come in the order of sending.  A flush is done when every part is answered for good.
 */
#ifndef STORAGE_WRITE_DELIVERY_H
#define STORAGE_WRITE_DELIVERY_H

#include "storage/core/session.h"
#include "storage/write/encode.h"
#include "storage/write/flush.h"
#include "storage/fold/pace.h"

struct seen_fold;

/* Parts whose reply is awaited; one reply answers all up to the last one of its script. */
struct sent_parts {
    struct sent_part {
        struct part *part;
        bool last, direct;
        uint64_t script_us;  /* of the last part: what its script is estimated to cost.. */
        size_t script_bytes; /* ..and how long it is */
    } * ring;                /* grows; capacity is a power of two */
    size_t head, n, capacity;
};

struct delivery {
    struct core *core;
    struct seen_fold *seen_fold; /* NULL: this process feeds no logs */
    struct pace pace;            /* how large scripts may be */
    struct encoder *encoder;
    struct lane lanes[PARTITIONS_MAX];
    struct flush *flushes; /* oldest first */
    unsigned n_flushes;
    struct sent_parts sent;
    size_t sent_scripts; /* of `sent` */
    uint64_t sent_us;    /* what they are estimated to cost */
    unsigned turn;       /* the partition that is next where not all may go at once */
    struct buffer out;
    size_t scripts;        /* in out */
    int64_t hold_until_ms; /* send nothing before: Redis asked for patience */
};

/* False: out of memory. */
bool delivery_init(struct delivery *d, struct core *core, struct seen_fold *seen_fold);
void delivery_release(struct delivery *d);

/* Take over a flush. */
void delivery_add(struct delivery *d, struct flush *flush);

/* Encode what the lanes have to send into d->out, for @session.  False: out of memory; the
 * connection must be given up, as half a script must not be sent. */
bool delivery_pump(struct delivery *d, const struct session *session, int64_t now_ms);

/* The next reply came.  False: the connection must be given up. */
bool delivery_take_reply(struct delivery *d, const struct reply *reply);

/* The connection is gone: all that is not done with is sent again on the next one. */
void delivery_lost(struct delivery *d);

/* Take the flushes that are done out, as a list; answer their jobs and free them with
 * delivery_finish. */
struct flush *delivery_take_done(struct delivery *d);
void delivery_finish(struct delivery *d, struct flush *done);

/* Answer the jobs under way whose time is up; their events are delivered all the same. */
void delivery_answer_late(struct delivery *d, int64_t now_ms);

/* Earliest deadline of a job under way, INT64_MAX if there is none. */
int64_t delivery_deadline_ms(const struct delivery *d);

#endif
