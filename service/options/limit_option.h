/* limit_option.h - parse rate limits: `funnel 5/60s burst 4 + sliding 100/1d`, `1000/1s`.
 *
 * Layer: service, pure.  Thread-safe.  storage/job/limit.h says what a funnel, a sliding limit and
 * a penalty are.
 *
 *     policy   part { "+" part }             1 to LIMIT_SET_MAX limits, at most one penalty
 *     part     "funnel" rate [ "burst" N ]   without `burst` one request passes at once
 *              "sliding" rate
 *              "penalty" DURATION "after" rate
 *     rate     COUNT "/" DURATION
 */
#ifndef SERVICE_OPTIONS_LIMIT_OPTION_H
#define SERVICE_OPTIONS_LIMIT_OPTION_H

#include "handlers/http/app.h"
#include "storage/base/compiler.h"
#include "storage/job/limit.h"

/* Parse a policy; ret->name stays empty.  NULL, or what is wrong, a static text. */
const char *limit_option_policy(const char *text, struct limit_policy *ret) MUST_CHECK;

/* Parse a rate into a funnel without burst.  NULL, or what is wrong, a static text. */
const char *limit_option_rate(const char *text, struct limit *ret) MUST_CHECK;

#endif
