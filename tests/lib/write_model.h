/* write_model.h - what write.lua does with a part's place, without Redis.
 *
 * One partition: per writer id the last sequence number (which expires), the rollup state's number,
 * and how often each part was applied in the history that survived.  Redis may go back to an
 * earlier moment: markers, state and content together, never the clock.
 */
#ifndef TESTS_LIB_WRITE_MODEL_H
#define TESTS_LIB_WRITE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WRITE_TTL_MS    1000000            /* age at which a part is not applied any more */
#define WRITE_MARKER_MS (2 * WRITE_TTL_MS) /* life of a marker, from each apply on */

struct write_command {
    size_t part;
    size_t writer; /* number of the writer id */
    uint64_t seq;
    unsigned state; /* expected */
    int64_t gen_ms;
};

enum write_code {
    WRITE_OK, /* applied now, or before */
    WRITE_REPLAN,
    WRITE_GAP,
    WRITE_STALE,
    WRITE_BROKEN, /* broke off behind the marker */
};

struct write_change {
    bool is_apply; /* else the state was moved */
    size_t part, writer;
    uint64_t last_before;
    int64_t expires_before_ms;
};

struct write_model {
    int64_t now_ms;
    unsigned state;
    struct write_change *history; /* owned, as are the arrays below */
    size_t n, capacity;
    struct write_marker {
        uint64_t last;
        int64_t expires_ms;
    } * markers; /* per writer */
    size_t n_writers;
    unsigned *applied; /* per part */
    size_t n_parts;
    const char *fault; /* the first rule that was broken, or NULL */
};

/* False: out of memory. */
bool write_model_init(struct write_model *model, size_t n_parts, size_t n_writers);
void write_model_release(struct write_model *model);

/* Run one script; with @breaks it breaks off half way if it gets that far.  *ret_applied: this very
 * copy was applied (perhaps half). */
enum write_code write_model_run(
    struct write_model *model, struct write_command command, bool breaks, bool *ret_applied);

void write_model_move_state(struct write_model *model);

/* The last @n changes of the history are gone. */
void write_model_lose(struct write_model *model, size_t n);

#endif
