/* limit_option.h - limits as options: `funnel 5/60s burst 4`, `sliding 100/10s`, `1000/1s`.
 *
 * Layer: service, pure.  Thread-safe.
 */
#ifndef SERVICE_OPTIONS_LIMIT_OPTION_H
#define SERVICE_OPTIONS_LIMIT_OPTION_H

#include "storage/job/limit.h"

/* A policy.  NULL, or what is wrong (static).  A funnel without `burst` has none: one at once. */
const char *limit_option_policy(const char *text, struct limit *ret);

/* COUNT/PERIOD, into a funnel without burst. */
const char *limit_option_rate(const char *text, struct limit *ret);

#endif
