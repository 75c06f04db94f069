/* problem.h - the answers to requests that fail: RFC 9457 problem documents.
 *
 * Layer: handlers.  Thread-safe: no state.
 *
 * All problems stand in one table; no other file writes the status of a failure.  The document is
 *
 *     {"type":"about:blank","title","status","detail","message"[,"errors":[..]]}
 *
 * `message` repeats `detail`, because Grafana shows no other member.
 *
 * A reply function replaces status, content type and body; an earlier body is freed.  Header fields
 * that were added before stay.  Retry-After is added where the problem has one.  The functions
 * cannot fail: without memory the answer has the right status and an empty body.  A detail is cut
 * at PROBLEM_DETAIL_MAX bytes.  Bytes that are not UTF-8 become '?'.
 */
#ifndef HANDLERS_REPLY_PROBLEM_H
#define HANDLERS_REPLY_PROBLEM_H

#include <jansson.h>

#include "handlers/http/http.h"
#include "storage/base/compiler.h"

#define PROBLEM_DETAIL_MAX 400

/* The detail where distinct addresses are asked for, and app->addresses is false. */
#define PROBLEM_NO_ADDRESSES "tallyd was started with --ips off: it counts no addresses"

/* With the type about:blank the title is the status's own phrase (RFC 9457 section 4.2.1).
 * retry_after_s: the value of Retry-After; -1: none.
 *    name                      status  title                          retry_after_s */
#define PROBLEMS(X)                                                                                \
    X(PROBLEM_MALFORMED, 400, "Bad Request", -1)                                                   \
    X(PROBLEM_UNAUTHORIZED, 401, "Unauthorized", -1)                                               \
    X(PROBLEM_FORBIDDEN, 403, "Forbidden", -1)                                                     \
    X(PROBLEM_NOT_FOUND, 404, "Not Found", -1)                                                     \
    X(PROBLEM_METHOD, 405, "Method Not Allowed", -1)                                               \
    X(PROBLEM_SLOW, 408, "Request Timeout", -1)                                                    \
    X(PROBLEM_CONFLICT, 409, "Conflict", -1)                                                       \
    X(PROBLEM_TOO_LARGE, 413, "Content Too Large", -1)                                             \
    X(PROBLEM_TARGET_TOO_LONG, 414, "URI Too Long", -1)                                            \
    X(PROBLEM_MEDIA_TYPE, 415, "Unsupported Media Type", -1)                                       \
    X(PROBLEM_UNACCEPTABLE, 422, "Unprocessable Content", -1)                                      \
    X(PROBLEM_LIMITED, 429, "Too Many Requests", -1)                                               \
    X(PROBLEM_HEAD_TOO_LARGE, 431, "Request Header Fields Too Large", -1)                          \
    X(PROBLEM_INTERNAL, 500, "Internal Server Error", -1)                                          \
    X(PROBLEM_UNAVAILABLE, 503, "Service Unavailable", 1)  /* nothing was applied */               \
    X(PROBLEM_UNKNOWN_OUTCOME, 504, "Gateway Timeout", -1) /* all or part may be applied */        \
    X(PROBLEM_VERSION, 505, "HTTP Version Not Supported", -1)

enum problem {
#define X(name, status, title, retry_after_s) name,
    PROBLEMS(X)
#undef X
};

/* The status of @problem, as 404. */
unsigned problem_status(enum problem problem) MUST_CHECK;

/* The phrase of a problem's status, as "Not Found"; NULL: no problem has that status. */
const char *problem_phrase(unsigned status) MUST_CHECK;

/* Answer with @problem.  The other arguments are a format and its values, as for printf(): they
 * make the detail, which says what is wrong with this request. */
#define problem_reply(response, problem, ...)                                                      \
    problem_reply_errors(response, problem, NULL, __VA_ARGS__)

/* The same with errors:[{"parameter":@parameter,"detail":detail}].  Some clients show the problem's
 * own detail and nothing else.  So that detail names the parameter too, "@parameter: detail",
 * unless it begins with the name anyway. */
void problem_reply_parameter(struct http_response *response, enum problem problem,
    const char *parameter, const char *detail_format, ...) __attribute__((format(printf, 4, 5)));

/* The same with @errors, an array of objects.  The reference is taken over, also if memory is out.
 * NULL leaves the member out. */
void problem_reply_errors(struct http_response *response, enum problem problem, json_t *errors,
    const char *detail_format, ...) __attribute__((format(printf, 4, 5)));

/* Answer 429 with the members of a limiter's answer: allowed, limit (@capacity), remaining,
 * retry_after_s, reset_after_s, and limited_by where @limited_by is not NULL; nothing in that text
 * needs an escape.  No tree is made: a refusal must cost little. */
void problem_reply_limited(struct http_response *response, int64_t capacity,
    const struct limit_state *state, const char *limited_by);

/* Answer for a storage job that failed.  @detail may be NULL or "": then storage_err_text() is
 * used.
 *
 *     503    nothing was applied
 *     504    something may have been applied
 *     429    over the limit
 *     422    the question cannot be answered
 *     404    there is no such page set
 *     500    @err is STORAGE_OK, which is the caller's mistake */
void problem_from_storage(struct http_response *response, enum storage_err err, const char *detail);

/* Answer 503: memory is out.  Returns false. */
bool problem_no_memory(struct http_response *response);

/* Add a header field.  @static_name is static, @value is copied.  False, with nothing added: the
 * response has HTTP_HEADERS_MAX fields already, or @value is too long.  (reply_header() adds static
 * text of any length.) */
bool problem_add_header(struct http_response *response, const char *static_name, const char *value);

#endif
