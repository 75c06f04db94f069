/* follow_state.h - how far `tallyd import --follow` has come in each file of a log, as text.
 *
 * Layer: service/client, pure.  Thread-safe.
 *
 * A log that rotates is a row of files: one that is written, and older ones with other names.  A
 * file is known by its inode and a digest of its first bytes, because inodes are used again.  The
 * name of a file says nothing, because a rotation changes the name.
 *
 * The text is JSON.  follow_store.h says when it is written.
 */
#ifndef SERVICE_CLIENT_FOLLOW_FOLLOW_STATE_H
#define SERVICE_CLIENT_FOLLOW_FOLLOW_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "service/client/import_key.h"
#include "storage/base/compiler.h"
#include "storage/base/slice.h"
#include "storage/job/event.h"

#define FOLLOW_FILES       64   /* at most so many files of one log are remembered */
#define FOLLOW_FILES_KEPT  56   /* of more than so many, the oldest are forgotten when done */
#define FOLLOW_HEAD        1024 /* bytes at a file's beginning that tell it from others */
#define FOLLOW_SITES       (EVENT_SITE_MAX + 32) /* bytes of `sites`, with the end of the string */
#define FOLLOW_STATE_BYTES (32 * 1024)

/* A time of a file, ns since 1970. */
static inline int64_t follow_time_ns(struct timespec at)
{
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

/* The first @n bytes of a file. */
struct follow_head {
    size_t n; /* up to FOLLOW_HEAD */
    uint8_t digest[16];
};

/* A place in a file that is read, and what is known of the lines before. */
struct follow_place {
    int64_t offset;    /* bytes from the file's beginning */
    uint64_t lines;    /* lines before */
    int64_t header;    /* offset of the last line before that names the fields (W3C); -1: none */
    bool in_long_line; /* the line at `offset` began earlier, and is too long to be read */
};

struct follow_file {
    struct import_file_id id; /* for the keys of pieces, made when the file was first seen */
    char format[16]; /* the format of the lines, as a value of --format; empty: not known yet */
    uint64_t inode;
    struct follow_head head;   /* the first bytes that were seen, also such behind `place` */
    struct follow_place place; /* everything before this place is dealt with */
    int64_t size;              /* bytes, when the file was last looked at */
    int64_t mtime_ns;          /* when the file was last seen to be written while it was the log */
    bool is_done;              /* another file has taken its place, and nothing more was written */
    bool is_past;              /* never read: the file had rotated before the very first look */
};

struct follow_state {
    /* The options that say for which site a line counts, as on a command line.  Empty: there is no
     * state yet, or an older version wrote it. */
    char sites[FOLLOW_SITES];
    size_t n;
    struct follow_file files[FOLLOW_FILES]; /* the oldest first */

    /* Bytes that are being sent, from their file's place on. */
    bool has_piece;
    struct follow_piece {
        size_t file;            /* the file's index in files[] */
        struct follow_place to; /* the place behind the piece */
        bool is_last;           /* read with FOLLOW_END_LAST: the last line may have no line end */
        /* When the server may first have got the piece, in UTC; 0: the server has not got it. */
        int64_t sent_at_s;
        /* The number of the piece's key.  The keys before are used up: see follow_send.h. */
        unsigned attempt;
    } piece;
};

/* The head of a file that begins with @bytes: at most FOLLOW_HEAD of them count. */
struct follow_head follow_head_of(struct slice bytes);

/* Does a file that begins with @bytes have @head? */
bool follow_head_fits(const struct follow_head *head, struct slice bytes);

/* The piece is dealt with: the place of its file moves behind it. */
void follow_state_pass(struct follow_state *state);

/* Forget file @index, which must not be the piece's. */
void follow_state_remove(struct follow_state *state, size_t index);

/* Write @state as text with a NUL.  Returns the text's length, 0 if memory is short. */
size_t follow_state_print(
    const struct follow_state *state, char ret[FOLLOW_STATE_BYTES]) MUST_CHECK;

/* Read what follow_state_print() wrote.  False: @text is something else.  If memory was short the
 * result is of no use: json_memory.h tells. */
bool follow_state_parse(struct slice text, struct follow_state *ret) MUST_CHECK;

#endif
