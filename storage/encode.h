/* encode.h - parts of flushes as the write script's command.
 *
 * Layer: storage.  One owner; scratch memory is kept between uses.
 */
#ifndef STORAGE_ENCODE_H
#define STORAGE_ENCODE_H

#include "storage/core.h"
#include "storage/flush.h"
#include "storage/script.h"

struct encoder;

struct encoder *encoder_new(struct core *core);
void encoder_free(struct encoder *encoder);

/* One script is made of parts: begin, add, end.  Parts that together cost more than PART_MAX_US, or
 * that a cluster would keep apart, belong into scripts of their own: encode_has_room says so. */
void encode_begin(struct encoder *encoder);
bool encode_has_room(const struct encoder *encoder, const struct part *part);

/* Add @part, planned for @view.  False: out of memory. */
bool encode_add(struct encoder *encoder, struct part *part, const struct partition_view *view);

/* The script carries the records of @flush's direct requests: all of its parts are in it. */
void encode_direct(struct encoder *encoder, const struct flush *flush);

/* Append the command to @out, if parts were added.  False: out of memory, @out is unusable. */
bool encode_end(struct encoder *encoder, const struct script_digests *scripts, struct buffer *out);

/* The part's script was answered OK: what it announced need not be announced again on this
 * connection. */
void encode_applied(struct encoder *encoder, const struct part *part);

/* The connection is gone: nothing is known any more. */
void encode_forget(struct encoder *encoder);

#endif
