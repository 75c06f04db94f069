/* seen_json.h - the body of POST /seen, decoded and checked.
 *
 * Layer: handlers, pure.  Thread-safe.
 *
 * The body is read strictly: a member that is not known is refused, because it is probably a typo.
 * A thousand pages are read in one pass and without a tree, because a tree costs more than the
 * question.
 */
#ifndef HANDLERS_COUNTS_SEEN_JSON_H
#define HANDLERS_COUNTS_SEEN_JSON_H

#include "storage/base/compiler.h"
#include "storage/base/slice.h"

#define SEEN_PAGES_MAX 1000

/* What was asked.  Slices point into the body. */
struct seen_body {
    struct slice user;
    struct slice site;   /* p is NULL where the body names none */
    struct slice *pages; /* owned; n of them */
    size_t n, capacity;
};

enum seen_json_result {
    SEEN_JSON_OK,
    SEEN_JSON_MALFORMED,    /* not JSON: see line, column, detail */
    SEEN_JSON_UNACCEPTABLE, /* see pointer, detail */
    SEEN_JSON_NOMEM,
};

struct seen_json_fault {
    char pointer[16];    /* JSON pointer to the member; "" is the object as a whole */
    const char *detail;  /* static, without input */
    size_t line, column; /* from 1; column counts bytes */
};

/* Decode @n bytes of @body, which are changed in place.  Release @ret whatever the result. */
enum seen_json_result seen_json_decode(
    char *body, size_t n, struct seen_body *ret, struct seen_json_fault *ret_fault) MUST_CHECK;

void seen_body_release(struct seen_body *body);

#endif
