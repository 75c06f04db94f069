/* limit_option.h - parse rate limits: `funnel 5/60s burst 4`, `sliding 100/10s`, `1000/1s`.
 *
 * Layer: service, pure.  Thread-safe.  storage/job/limit.h says what a funnel and a sliding limit
 * are.
 */
#ifndef SERVICE_OPTIONS_LIMIT_OPTION_H
#define SERVICE_OPTIONS_LIMIT_OPTION_H

#include "storage/base/compiler.h"
#include "storage/job/limit.h"

/* Parse a policy.  NULL, or what is wrong, a static text.  A funnel without `burst` lets one
 * request through at once. */
const char *limit_option_policy(const char *text, struct limit *ret) MUST_CHECK;

/* Parse COUNT/PERIOD into a funnel without burst.  NULL, or what is wrong, a static text. */
const char *limit_option_rate(const char *text, struct limit *ret) MUST_CHECK;

#endif
