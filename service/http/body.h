/* body.h - a request body, gathered piece by piece as it arrives.
 *
 * Layer: service.  Knows zlib; no HTTP library, no clock.
 *
 * A body grows into one block, at most `limit` bytes of it; with Content-Encoding: gzip it is
 * inflated as it comes, and the limit counts what comes out, so a bomb costs no more than an honest
 * body. Memory beyond the caller's own first buffer is taken from a budget that all bodies in
 * flight share, before it is allocated.  A body's claimed length reserves little (BODY_CLAIM_MAX):
 * the rest must be sent first, so that idle claims cannot starve the others.
 *
 * Errors stick: after the first one nothing more is kept, and what is appended is swallowed (the
 * HTTP library takes no answer while the client is still sending).
 *
 * Thread safety: a body belongs to one thread at a time; the budget is atomic.
 */
#ifndef SERVICE_HTTP_BODY_H
#define SERVICE_HTTP_BODY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/slice.h"

#define BODY_CLAIM_MAX                                                                             \
    ((size_t)64 * 1024) /* most that is reserved on the word of Content-Length                     \
                         */
#define BODY_INFLATE_MEM                                                                           \
    ((size_t)48 * 1024) /* what zlib takes for one stream: window and tables                       \
                         */

enum body_err {
    BODY_OK,
    BODY_TOO_LARGE, /* more bytes than the limit, once decoded */
    BODY_NO_BUDGET, /* the bodies in flight hold all the memory they may: come again */
    BODY_NO_MEMORY, /* the system gives none */
    BODY_CODING,    /* a Content-Encoding other than gzip and identity */
    BODY_BAD_GZIP,  /* no gzip stream, or damaged, or followed by something else */
    BODY_TRUNCATED, /* the gzip stream does not end */
};

/* Text for the client; static. */
const char *body_err_text(enum body_err err);

struct body_budget {
    size_t max;
    _Atomic size_t used;
};

/* Zeroed it is released.  Fields are for reading: bytes[0..n) is the body once body_end() said
 * BODY_OK. */
struct body {
    char *bytes; /* never NULL after body_init; the caller's first buffer, or a heap block */
    size_t n;
    enum body_err err;

    /* Private. */
    size_t capacity, limit, claimed, reserved;
    struct body_budget *budget;
    struct body_inflate *inflate; /* NULL: identity */
    bool on_heap;
};

/* Begin an empty body that may hold @limit bytes.  @first is the caller's buffer of @first_n > 0
 * bytes, used as long as it is enough; it and @budget must outlive the body. */
void body_init(
    struct body *body, struct body_budget *budget, size_t limit, char *first, size_t first_n);

/* Announce @n bytes to come (Content-Length).  Fails early, before any byte was sent, with
 * BODY_TOO_LARGE, or with BODY_NO_BUDGET if so many could not be held now.  Nothing is reserved. */
enum body_err body_claim(struct body *body, uint64_t n);

/* Set the coding from the value of Content-Encoding; empty is identity.  Before the first append,
 * and before body_claim: the length of an encoded body says nothing of what comes out. */
enum body_err body_coding(struct body *body, struct slice value);

/* Take the next piece.  Returns the body's error, the first one there was. */
enum body_err body_append(struct body *body, const char *p, size_t n);

/* The last piece was appended. */
enum body_err body_end(struct body *body);

/* Free, and give the budget back.  Harmless on a body that is released. */
void body_release(struct body *body);

#endif
