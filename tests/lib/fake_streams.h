/* fake_streams.h - what a fold reads of Redis: heads, cursors, and the entries of streams.
 *
 * It answers HGETALL, TIME, HGET of a cursor, EXISTS and XRANGE, through stand_in.h.  All
 * partitions have the same cursors.
 */
#ifndef TESTS_LIB_FAKE_STREAMS_H
#define TESTS_LIB_FAKE_STREAMS_H

#include "storage/redis/reply.h"
#include "storage/schema/log_state.h"
#include "tests/lib/commands.h"

#define FAKE_STREAMS   3
#define FAKE_ITEMS_MAX 200

/* Entry n is there if has[n].  It has one event, or is none of ours. */
struct fake_stream_log {
    char id[LOG_ID_TEXT + 1];
    bool has_head, has[FAKE_ITEMS_MAX + 1], is_foreign[FAKE_ITEMS_MAX + 1];
    uint64_t n;
    int64_t time_ms;
    const char *cursor; /* NULL: none */
};

struct fake_streams {
    struct fake_stream_log logs[FAKE_STREAMS];
    size_t n_logs;
    const char *closed; /* how many logs were closed; NULL: the register does not say */
    unsigned n_ranges;  /* how often XRANGE came.. */
    char last[100];     /* ..and the words of the last one, behind its key */
    bool is_lost;       /* the connection gives no answer.. */
    bool refuses;       /* ..and XRANGE an error */
};
extern struct fake_streams fake_streams;

/* A log with entries 1 to @n. */
struct fake_stream_log *fake_streams_add(const char *id, uint64_t n);

/* Have all questions answered by fake_streams. */
void fake_streams_stand_in(void);

/* The heads, as the reply to HGETALL. */
const struct reply *fake_streams_heads(void);

#endif
