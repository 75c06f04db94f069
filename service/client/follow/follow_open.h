/* follow_open.h - one file of an access log that is followed, held open: watched while it may grow.
 *
 * Layer: service/client.  Blocking.  Not thread-safe.  Times are of the monotonic clock.
 *
 * A file that is shorter than what was read of it, or begins otherwise, was truncated.  A file that
 * was replaced is done once it rests.
 */
#ifndef SERVICE_CLIENT_FOLLOW_FOLLOW_OPEN_H
#define SERVICE_CLIENT_FOLLOW_FOLLOW_OPEN_H

#include "service/client/follow/follow_piece.h"
#include "service/client/follow/follow_state.h"
#include "storage/base/compiler.h"

/* A file that was replaced, and is silent for so long, will not grow any more. */
#define FOLLOW_REST_MS 5000

struct follow_open {
    int fd;             /* -1: not open */
    bool is_gone;       /* bytes that were not read yet are not there any more */
    bool is_moving;     /* the file was renamed during the last look: the next look finds it */
    bool is_unsure;     /* the file was seen only empty, and was written since, or truncated, too */
    bool is_replaced;   /* the log's path leads to another file */
    bool has_half_line; /* the bytes from place.offset to the end are no whole line */
    int64_t grew_ms;    /* when the file was last seen to be longer */
    int64_t mtime_ns;   /* when the file was last written, UTC */
    int64_t noticed_ms; /* when bytes behind place.offset were first seen; -1: there are none */
};

#define FOLLOW_NOT_OPEN ((struct follow_open){.fd = -1, .noticed_ms = -1})

void follow_open_close(struct follow_open *open); /* a file that is not open is fine */

/* Look at an open file, and bring @file up to date, unless the file is_unsure now.  A file is
 * closed that was truncated, or that is done and was deleted.  True: file->is_done has become true,
 * because nothing more will be written. */
bool follow_open_watch(
    struct follow_open *open, struct follow_file *file, int64_t now_ms) MUST_CHECK;

/* Does the open file, of @size bytes, still have the bytes that were read?  Its head is read again,
 * and file->head becomes longer if the file did. */
bool follow_open_check(const struct follow_open *open, struct follow_file *file, int64_t size);

/* Has the file bytes that must be read now, because they have waited for @patience_ms, or are many?
 * *ret_end says how the file's end is to be taken. */
bool follow_open_due(const struct follow_open *open, const struct follow_file *file, int64_t now_ms,
    int64_t patience_ms, enum follow_end *ret_end) MUST_CHECK;

/* The file was read up to @cut's end, perhaps a while ago. */
void follow_open_read(
    struct follow_open *open, const struct follow_file *file, const struct follow_cut *cut);

#endif
