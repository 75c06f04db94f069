/* active.h - GET /dau and /active: how many users were active on days.
 *
 * Layer: handlers.
 */
#ifndef HANDLERS_USERS_ACTIVE_H
#define HANDLERS_USERS_ACTIVE_H

#include "handlers/http/http.h"

enum handler_result dau_start(struct http_exchange *exchange);
void dau_finish(struct http_exchange *exchange);
enum handler_result active_start(struct http_exchange *exchange);
void active_finish(struct http_exchange *exchange);

#endif
