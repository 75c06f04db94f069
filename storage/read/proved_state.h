/* proved_state.h - what the files of a proved reading have in common.
 *
 * Layer: storage, private to proved_read.c (a question, its attempts, what is remembered),
 * proved_ask.c and proved_take.c.
 */
#ifndef STORAGE_READ_PROVED_STATE_H
#define STORAGE_READ_PROVED_STATE_H

#include <stddef.h>

struct proved_piece;
struct proved_read;

#define PROVED_OUT_KEPT ((size_t)256 * 1024) /* bytes of commands whose memory is kept */

/* How many replies a piece has. */
size_t proved_n_replies(const struct proved_piece *piece);

/* Read and drop the replies that were not taken, and forget the pieces that were not sent. */
void proved_drain(struct proved_read *r);

#endif
