/* packed.h - chunks as a log keeps them: compressed, behind their length.
 *
 * Layer: storage, pure.  Thread-safe: no state.
 *
 * An entry holds the chunks of requests that came together, and each request has the names of its
 * site and its values (a browser, a campaign) for itself.  So single events of 145 bytes take some
 * 30 when they are compressed as one, at 65 ns an event, and 15 ns to read.  Redis copies and
 * writes so much less, and tallyd holds so much less.
 *
 *     packed   4 bytes: length of the chunks, little endian
 *              a block of LZ4; or the chunks as they are, if these are no longer.  Never a block of
 *              that very length, so the length tells which of the two
 *
 * Source of the format: LZ4_compress_default() of lz4, "LZ4 Block Format Description".
 */
#ifndef STORAGE_LOG_PACKED_H
#define STORAGE_LOG_PACKED_H

#include "storage/base/arena.h"
#include "storage/base/buffer.h"
#include "storage/base/compiler.h"
#include "storage/base/slice.h"

/* Chunks of more bytes are not compressed. */
#define PACKED_MAX ((size_t)64 << 20)

/* Put @chunks, packed, into the empty buffer @out; of no bytes nothing is made.  The buffer may get
 * as much memory as the chunks, and some to spare.  False: out of memory. */
bool packed_write(struct buffer *out, struct slice chunks) MUST_CHECK;

enum packed_err { PACKED_OK, PACKED_BROKEN, PACKED_NOMEM };

/* Unpack the chunks: *ret lies in @arena, or in @packed itself.  PACKED_BROKEN: @packed is no
 * packed chunks. */
enum packed_err packed_read(struct slice packed, struct arena *arena, struct slice *ret) MUST_CHECK;

#endif
