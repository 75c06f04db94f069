/* body.h - a request body, gathered piece by piece as it arrives.
 *
 * Layer: service.  Knows zlib; no HTTP library, no clock.
 *
 * A body grows into one block of at most `limit` bytes.  A body with Content-Encoding: gzip is
 * inflated as it comes.  The limit counts the inflated bytes, so a zip bomb costs no more than an
 * honest body.
 *
 * All bodies in flight share a budget of memory.  A body takes from the budget what does not fit
 * into the caller's own first buffer, before that memory is allocated.  Content-Length reserves
 * little, at most BODY_CLAIM_MAX: a client must send the rest first, so that idle claims cannot
 * starve other requests.
 *
 * Errors stick.  After the first error nothing more is kept, and further pieces are swallowed,
 * because the HTTP library takes no answer while the client is still sending.
 *
 * Thread safety: a body belongs to one thread at a time; the budget is atomic.
 */
#ifndef SERVICE_HTTP_BODY_H
#define SERVICE_HTTP_BODY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storage/base/compiler.h"
#include "storage/base/slice.h"

/* Bytes: the most that is reserved on the word of Content-Length. */
#define BODY_CLAIM_MAX ((size_t)64 * 1024)

/* Bytes that zlib takes for one stream: window and tables. */
#define BODY_INFLATE_MEM ((size_t)48 * 1024)

enum body_err {
    BODY_OK,
    BODY_TOO_LARGE, /* more bytes than the limit, once decoded */
    BODY_NO_BUDGET, /* the bodies in flight hold all the memory they may */
    BODY_NO_MEMORY, /* the system is out of memory */
    BODY_CODING,    /* a Content-Encoding other than gzip and identity */
    BODY_BAD_GZIP,  /* no gzip stream, a damaged one, or one with something behind it */
    BODY_TRUNCATED, /* the gzip stream does not end */
};

/* A text for the client; static. */
const char *body_err_text(enum body_err err);

/* Bytes that all bodies in flight share. */
struct body_budget {
    size_t max;
    _Atomic size_t used;
};

/* A zeroed body counts as released.  Fields are for reading: bytes[0..n) is the body, once
 * body_end() has returned BODY_OK. */
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
 * bytes, and holds the body as long as it is large enough.  @first and @budget must outlive the
 * body. */
void body_init(
    struct body *body, struct body_budget *budget, size_t limit, char *first, size_t first_n);

/* Announce @n bytes to come (Content-Length), before the first byte is sent.  BODY_TOO_LARGE: more
 * than the limit.  BODY_NO_BUDGET: the budget could not hold so many now.  Nothing is reserved. */
enum body_err body_claim(struct body *body, uint64_t n) MUST_CHECK;

/* Set the coding from the value of Content-Encoding; empty is identity.  Call this before the first
 * body_append(), and before body_claim(): the length of an encoded body says nothing about what
 * comes out. */
enum body_err body_coding(struct body *body, struct slice value) MUST_CHECK;

/* Take the next piece, @n bytes at @p.  Returns the body's first error, if there was one. */
enum body_err body_append(struct body *body, const char *p, size_t n);

/* The last piece was appended.  BODY_OK: the body is complete. */
enum body_err body_end(struct body *body) MUST_CHECK;

/* Free the body, and give its share of the budget back.  A released body is fine. */
void body_release(struct body *body);

#endif
