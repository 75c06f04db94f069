/* limit_json.h - the body of POST /ratelimit, decoded and checked.
 *
 * Layer: handlers, pure.  Thread-safe.
 *
 * The body is read strictly.  A member that is not known is refused, because a typo would otherwise
 * make a limit that was not meant.
 */
#ifndef HANDLERS_LIMIT_LIMIT_JSON_H
#define HANDLERS_LIMIT_LIMIT_JSON_H

#include "handlers/http/http.h"
#include "storage/base/compiler.h"

/* What was asked.  Slices point into the body. */
struct limit_question {
    struct slice key;
    struct slice policy; /* the name of a policy; empty: the body itself says the limit */
    struct limit limit;  /* passes limit_check(), unless a policy is named */
    int64_t cost;        /* how much to take from the limit; 0: only look */
};

enum limit_json_result {
    LIMIT_JSON_OK,
    LIMIT_JSON_MALFORMED,    /* not JSON: see line, column, detail */
    LIMIT_JSON_UNACCEPTABLE, /* see pointer, detail */
};

struct limit_json_fault {
    const char *pointer; /* JSON pointer to the member, static; "" is the object as a whole */
    const char *detail;  /* static, without input */
    size_t line, column; /* from 1; column counts bytes */
};

/* Decode @n bytes of @body, which are changed in place. */
enum limit_json_result limit_json_decode(char *body, size_t n, struct limit_question *ret,
    struct limit_json_fault *ret_fault) MUST_CHECK;

#endif
