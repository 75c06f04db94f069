/* activity.h - GET /dau and /active: how many users were active on days.
 *
 * Layer: handlers.
 */
#ifndef HANDLERS_ACTIVITY_H
#define HANDLERS_ACTIVITY_H

#include "handlers/http.h"

enum handler_result dau_start(struct http_exchange *exchange);
void dau_finish(struct http_exchange *exchange);
enum handler_result active_start(struct http_exchange *exchange);
void active_finish(struct http_exchange *exchange);

#endif
