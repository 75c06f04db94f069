/* encode.h - parts of flushes as the write script's command.
 *
 * Layer: storage.  One owner; scratch memory is kept between uses.
 */
#ifndef STORAGE_WRITE_ENCODE_H
#define STORAGE_WRITE_ENCODE_H

#include "storage/core/core.h"
#include "storage/redis/script.h"
#include "storage/write/flush.h"
#include "storage/fold/pace.h"

struct encoder;

/* @pace is looked at whenever a script is cut.  NULL: out of memory. */
struct encoder *encoder_new(struct core *core, const struct pace *pace);
void encoder_free(struct encoder *encoder);

/* One script is made of parts: begin, add, end.  Parts that together cost more than the pace
 * (pace.h) allows, or that a cluster would keep apart, belong into scripts of their own:
 * encode_has_room says so. */
void encode_begin(struct encoder *encoder);
bool encode_has_room(const struct encoder *encoder, const struct part *part);

/* What the script at hand is estimated to cost Redis, in microseconds. */
uint64_t encode_us(const struct encoder *encoder);

/* Add @part, planned for @view.  False: out of memory. */
bool encode_add(struct encoder *encoder, struct part *part, const struct partition_view *view);

/* The script carries the records of @flush's direct requests: all of its parts are in it. */
void encode_direct(struct encoder *encoder, const struct flush *flush);

/* Append the command to @out, if parts were added.  False: out of memory, @out is unusable. */
bool encode_end(struct encoder *encoder, const struct script_digests *scripts, struct buffer *out);

/* A user whose bits a part sets: what is remembered once Redis has said OK.  (part->users, in the
 * flush's arena.) */
struct part_user {
    uint32_t row;       /* one of theirs */
    uint32_t index;     /* USER_INDEX_NONE: the next one that the reply tells */
    int32_t active_day; /* see known_users.h */
};

/* The part's script was answered OK, with @learnt (see write.lua): what it announced need not be
 * announced again on this connection, and who its users are is known. */
void encode_applied(struct encoder *encoder, const struct part *part, const struct reply *learnt);

/* Redis says that a user of @partition was forgotten: no index known there is relied on any more.
 */
void encode_forget_users(struct encoder *encoder, unsigned partition);

/* The connection is gone: nothing is known any more. */
void encode_forget(struct encoder *encoder);

#endif
