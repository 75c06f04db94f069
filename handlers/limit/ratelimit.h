/* ratelimit.h - POST /ratelimit, GET /ratelimit/check, DELETE /ratelimit: limits for others.
 *
 * Layer: handlers.  A policy is a limit with a name, from the configuration file; its keys are its
 * own, so one name under two policies is two things.
 */
#ifndef HANDLERS_LIMIT_RATELIMIT_H
#define HANDLERS_LIMIT_RATELIMIT_H

#include "handlers/http/http.h"

enum handler_result ratelimit_start(struct http_exchange *exchange);
void ratelimit_finish(struct http_exchange *exchange);

enum handler_result ratelimit_check_start(struct http_exchange *exchange);
void ratelimit_check_finish(struct http_exchange *exchange);

enum handler_result ratelimit_reset_start(struct http_exchange *exchange);
void ratelimit_reset_finish(struct http_exchange *exchange);

#endif
