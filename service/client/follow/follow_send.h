/* follow_send.h - send pieces of an access log so that each counts once, whatever is killed.
 *
 * Layer: service/client.  Blocking.  Not thread-safe.
 *
 * The bounds of a piece are on the disk before it is sent, with the time.  So a piece is sent again
 * with the same key and the same body until the server has answered, also by the next process.  A
 * server knows a key for a day.  A piece that may have been counted longer ago is not sent again: a
 * message says that its bytes are in doubt.
 *
 *   the server says                       the piece
 *   accepted or rejected                  is done
 *   the key was used with another body    was counted, by a follower with other options, or its key
 *                                         was only asked: the key is asked, which tells.  If all of
 *                                         several keys in a row were used, the piece is refused
 *   503, 429, or it does not listen       was not counted now; waits, and is sent again
 *   504, or no answer                     is in doubt; waits, and is sent again
 *   too large                             is cut in two; if in doubt, its key is asked first
 *   anything else                         stays, and the follower stops
 *
 * To ask a key is to send an empty list under that key.  If the server refuses the list, because
 * the key was used, the piece was counted.  If the server takes the list, the piece was not
 * counted, and under this key it never will be.
 */
#ifndef SERVICE_CLIENT_FOLLOW_FOLLOW_SEND_H
#define SERVICE_CLIENT_FOLLOW_FOLLOW_SEND_H

#include "service/client/follow/follow_piece.h"
#include "service/client/follow/follow_store.h"
#include "service/client/import_upload.h"
#include "storage/base/compiler.h"

/* A piece that may be counted is sent again for so long: ten minutes less than a key lives. */
#define FOLLOW_KEY_LIVES_S (86400 - 600)

struct follow_sender {
    struct import_upload *upload; /* borrowed, like the next four */
    struct import_lines *lines;
    struct follow_store *store;
    struct follow_state *state;
    const char *path;
    size_t request_max; /* the most events that the server takes at once */

    struct follow_cut cut; /* the bytes whose events are in the batch */
    size_t file;           /* the index of the cut's file */
    bool is_sending;       /* a part of the cut is still to be sent */
    int64_t try_at_ms;     /* when to try next, CLOCK_MONOTONIC */

    /* Fields below are the sender's own. */
    size_t first;       /* the first event of the batch that is still to be sent */
    bool is_last;       /* the cut ends as FOLLOW_END_LAST: its last line may have no line end */
    bool is_doubted;    /* the piece may have been counted, since piece.sent_at_s */
    bool is_doubt_ours; /* it may have been counted by an attempt of this process */
    bool is_waiting;    /* a message has said that the sender waits for the server */
    int64_t wait_ms;    /* the last pause; 0: there was none since the server answered */
};

enum follow_sent {
    FOLLOW_SENT_ALL,  /* nothing is left to be sent */
    FOLLOW_SENT_WAIT, /* call again at try_at_ms */
    FOLLOW_SENT_STOP, /* a message has said why nothing can be sent */
};

/* Begin with @state's piece, if another process has left one.  All arguments outlive *ret. */
void follow_sender_init(struct follow_sender *ret, struct import_upload *upload,
    struct import_lines *lines, struct follow_store *store, struct follow_state *state,
    const char *path);

/* The batch has the events of sender->cut, from the place of file @file on; @is_last is as in
 * struct follow_piece.  If the state has a piece, the cut has its bytes.  Where there is no event,
 * the file's place moves on at once, and is_sending is false. */
void follow_sender_begin(struct follow_sender *sender, size_t file, bool is_last);

/* Send the cut, as much as the server takes, at @now_ms (CLOCK_MONOTONIC).  The file's place moves
 * on with each piece that is dealt with. */
enum follow_sent follow_sender_try(struct follow_sender *sender, int64_t now_ms) MUST_CHECK;

/* The bytes of the state's piece are not there any more: find out whether they were counted.  If
 * they were, the file's place moves on.  FOLLOW_SENT_ALL: the state has no piece any more. */
enum follow_sent follow_sender_resolve(struct follow_sender *sender, int64_t now_ms) MUST_CHECK;

#endif
