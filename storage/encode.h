/* encode.h - a part of a flush as the write script's command.
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

/* Append the command for @part to @out, planned for @view.  False: out of memory, @out is unusable.
 */
bool encode_part(struct encoder *encoder, struct part *part, const struct partition_view *view,
    const struct script_digests *scripts, struct buffer *out);

/* The part's script was answered OK: what it announced need not be announced again on this
 * connection. */
void encode_applied(struct encoder *encoder, const struct part *part);

/* The connection is gone: nothing is known any more. */
void encode_forget(struct encoder *encoder);

#endif
