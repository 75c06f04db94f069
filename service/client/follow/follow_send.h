/* follow_send.h - send pieces of an access log so that each counts once, whatever is killed.
 *
 * Layer: service/client.  Blocking.  Not thread-safe.
 *
 * The bounds of a piece are on the disk before it is sent, with the time.  So a piece is sent again
 * with the same key and the same body until the server has answered, also by the next process.  A
 * server knows a key for a day.  A piece that may have been counted longer ago is not sent again:
 * its bytes are said to be in doubt.
 *
 *   the server says                       the piece
 *   accepted or rejected                  is done
 *   the key was used with another body    was counted, by a follower with other options; or was
 *                                         only asked: the key is asked, which tells.  Of several
 *                                         keys in a row: is refused
 *   503, 429, or it does not listen       was not counted now; waits, and is sent again
 *   504, or no answer                     is in doubt; waits, and is sent again
 *   too large                             is cut in two; if in doubt, its key is asked first
 *   anything else                         stays, and the follower stops
 *
 * To ask a key is to offer it with an empty list: refused, because the key was used, the piece was
 * counted; taken, it was not, and will not be.
 */
#ifndef SERVICE_CLIENT_FOLLOW_FOLLOW_SEND_H
#define SERVICE_CLIENT_FOLLOW_FOLLOW_SEND_H

#include "service/client/follow/follow_piece.h"
#include "service/client/follow/follow_store.h"
#include "service/client/import_upload.h"
#include "storage/base/compiler.h"

/* How long a piece that may be counted is sent again: ten minutes less than a key lives. */
#define FOLLOW_KEY_LIVES_S (86400 - 600)

struct follow_sender {
    struct import_upload *upload; /* borrowed, like the next four */
    struct import_lines *lines;
    struct follow_store *store;
    struct follow_state *state;
    const char *path;
    size_t request_max; /* the most events that the server takes at once */

    struct follow_cut cut; /* what is in the batch */
    size_t file;           /* of the cut */
    bool is_sending;       /* a part of the cut is not dealt with */
    int64_t try_at_ms;     /* when to try next (monotonic) */

    /* Fields below are the sender's own. */
    size_t first; /* event of the batch that is not dealt with */
    bool is_last;
    bool is_doubted;    /* the piece may be counted, since piece.sent_at_s */
    bool is_doubt_ours; /* by an attempt of this process */
    bool is_waiting;    /* and it was said that the server is waited for */
    int64_t wait_ms;
};

enum follow_sent {
    FOLLOW_SENT_ALL,  /* nothing is left to be sent */
    FOLLOW_SENT_WAIT, /* call again at try_at_ms */
    FOLLOW_SENT_STOP, /* it was said why nothing can be sent */
};

/* *ret has @state's piece, if there is one, as it was left by another process. */
void follow_sender_init(struct follow_sender *ret, struct import_upload *upload,
    struct import_lines *lines, struct follow_store *store, struct follow_state *state,
    const char *path);

/* The batch has the bytes sender->cut of file @file, from its place on; @is_last as in struct
 * follow_piece.  If the state has a piece, these are its bytes.  Bytes without an event are dealt
 * with at once: is_sending is false then. */
void follow_sender_begin(struct follow_sender *sender, size_t file, bool is_last);

/* Send what was begun, as much as the server takes, at @now_ms (monotonic).  Places move on as it
 * is dealt with. */
enum follow_sent follow_sender_try(struct follow_sender *sender, int64_t now_ms) MUST_CHECK;

/* The bytes of the state's piece are not there any more: find out whether they are counted.  If
 * they are, the file's place moves on.  FOLLOW_SENT_ALL: the state has no piece any more. */
enum follow_sent follow_sender_resolve(struct follow_sender *sender, int64_t now_ms) MUST_CHECK;

#endif
