/* log_state.h - what Redis says about a log beside its entries: its head, and the cursors in it.
 *
 * Layer: storage, pure.  Thread-safe: no state.
 *
 * A log is a stream of requests that were acknowledged and are to be counted in the partitions.
 * Its entries have the numbers 1, 2, 3 and so on.  Two hashes tell how far a log is:
 *
 *     t:{0}:heads   a field for each log that is open: its head, "n era time"; and the field
 *                   `closed`: how many logs were closed
 *     t:{p}:state   a field for each log of which partition p has counted something: its cursor
 *
 * Everything that was acknowledged is counted once the cursor of every partition has reached the
 * head.  A log without a head is closed: everything in it is counted.  If heads and `closed` are
 * as at an earlier reading, nothing was appended meanwhile: a log that came and went in between
 * would have changed `closed`.
 */
#ifndef STORAGE_SCHEMA_LOG_STATE_H
#define STORAGE_SCHEMA_LOG_STATE_H

#include "storage/base/compiler.h"
#include "storage/base/slice.h"
#include "storage/redis/reply.h"

#define LOG_ID_TEXT 16 /* hex digits of 64 random bits: of a log's id, and of an era */

/* Is @text the id of a log?  No other field of t:{p}:state reads as one. */
bool log_id_is(struct slice text) MUST_CHECK;

struct log_head {
    char id[LOG_ID_TEXT + 1];
    char era[LOG_ID_TEXT + 1]; /* of the connection that appended the last entry; "0": none */
    uint64_t n;                /* number of the last entry; 0: there is none */
    int64_t time_ms;           /* Redis's clock when the log's writer was heard of last */
    /* Set by the caller: */
    unsigned place;   /* of the register, core_log_partition() */
    uint64_t counted; /* all partitions have counted the entries up to this number */
};

/* Read a log's field of t:{0}:heads.  False, with @ret untouched: the field is not that of a log.
 */
bool log_head_parse(struct slice id, struct slice value, struct log_head *ret) MUST_CHECK;

/* Is @name that of the field `closed` of t:{0}:heads?  Then @value is read.  False, with @ret
 * untouched: @name is another one, or @value is no number. */
bool log_closed_parse(struct slice name, struct slice value, uint64_t *ret) MUST_CHECK;

/* How much of a log is counted.  Zeroed: nothing. */
struct log_position {
    uint64_t whole;  /* all entries up to this number are counted */
    uint64_t events; /* so many events of the next entry are counted */
};

/* How much of a log a partition has counted.  The tasks of a partition fall into stripes
 * (fold/batch_tasks.h); each stripe has a position.  Positions differ only while more waits than
 * one transaction takes: each transaction then counts some stripes to the end. */
#define LOG_STRIPES 32
struct log_cursor {
    struct log_position at[LOG_STRIPES];
};

/* Is less counted at @a than at @b? */
static inline bool log_position_before(struct log_position a, struct log_position b)
{
    return a.whole < b.whole || (a.whole == b.whole && a.events < b.events);
}

/* The number up to which all entries are counted in all stripes. */
uint64_t log_cursor_whole(const struct log_cursor *cursor);

/* Lower *@least to the whole of the cursor in @field, if that is less: after a call for each cursor
 * it is what all of them have counted.  False, with @least untouched: @field is no cursor. */
bool log_cursor_least(const struct reply *field, uint64_t *least) MUST_CHECK;

/* Write a cursor as text: the positions in the order of stripes, with commas between; each is "n",
 * or "n:i" where entry n is not complete.  Where k > 1 stripes in a row have the same position,
 * "*k" follows, unless all stripes have.
 * A NUL is appended.  Returns the length. */
#define LOG_CURSOR_TEXT (LOG_STRIPES * 48)
size_t log_cursor_print(const struct log_cursor *cursor, char text[LOG_CURSOR_TEXT]);

/* Read a cursor from the reply that has its field; nil: nothing is counted.  False, with @ret
 * untouched: @field is no cursor. */
bool log_cursor_parse(const struct reply *field, struct log_cursor *ret) MUST_CHECK;

#endif
