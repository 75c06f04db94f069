/* import_upload.h - post events to a tallyd over one connection that is kept.
 *
 * Layer: service/client.  Blocking.  Not thread-safe.  One call is one attempt.  The caller waits
 * and tries again, with the same key.
 */
#ifndef SERVICE_CLIENT_IMPORT_UPLOAD_H
#define SERVICE_CLIENT_IMPORT_UPLOAD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "storage/base/compiler.h"
#include "storage/base/slice.h"

enum import_upload_result {
    IMPORT_UPLOAD_ANSWERED,    /* the answer says what became of every event */
    IMPORT_UPLOAD_BUSY,        /* 503, 429: try again after retry_after_s */
    IMPORT_UPLOAD_UNREACHABLE, /* nothing was applied: the server did not get all of the request */
    IMPORT_UPLOAD_TOO_LARGE,   /* nothing was applied; fewer events at a time might pass */
    IMPORT_UPLOAD_KEY_USED,    /* nothing was applied: the key stands for another body */
    IMPORT_UPLOAD_REFUSED,     /* nothing was applied, and trying again does not help */
    IMPORT_UPLOAD_IN_DOUBT,    /* the request was sent, and may have been applied */
};

/* A server that is busy is asked again after so long, then after twice as long, and so on. */
#define IMPORT_UPLOAD_WAIT_MIN_MS 250
#define IMPORT_UPLOAD_WAIT_MAX_MS 8000

/* How many rejected events POST /events lists at most. */
#define IMPORT_UPLOAD_REJECTS 100

struct import_upload_answer {
    /* After IMPORT_UPLOAD_ANSWERED. */
    uint64_t accepted, rejected; /* exact */
    uint64_t dropped;            /* exact: by the server's --bots and ignore-ip */
    bool replayed;               /* the server had counted the events before */
    size_t n_rejects;            /* how many of the rejected are listed */
    struct import_upload_reject {
        size_t index; /* the event's in the body, from 0; below the count that was posted */
        char detail[192];
    } rejects[IMPORT_UPLOAD_REJECTS];

    /* After every other result: the reason, as one line of printable text. */
    char detail[512];
    int64_t retry_after_s; /* 0: the server did not say */
};

struct import_upload;

/* @url is the server's address without "/events".  @token is a bearer token, or NULL.
 * @count_robots: the server counts robots, whatever its --bots says.  NULL: out of memory. */
struct import_upload *import_upload_new(
    const char *url, const char *token, bool count_robots) MUST_CHECK;
void import_upload_free(struct import_upload *upload); /* NULL is fine */

/* From now on a post ends about @patience_ms after *@stop was set, as if the server had not
 * answered.  @stop must outlive @upload. */
void import_upload_stop_at(
    struct import_upload *upload, const volatile sig_atomic_t *stop, int64_t patience_ms);

/* Post @body, which has @count events in NDJSON, with @key as Idempotency-Key.  With @count 0 @body
 * is an empty JSON array.  *ret is written whatever the result. */
enum import_upload_result import_upload_post(struct import_upload *upload, const char *key,
    struct slice body, size_t count, struct import_upload_answer *ret) MUST_CHECK;

#endif
