/* users.h - GET /users/{user}/activity, GET /active/users, DELETE /users/{user}: users one by one.
 *
 * Layer: handlers.
 */
#ifndef HANDLERS_USERS_USERS_H
#define HANDLERS_USERS_USERS_H

#include "handlers/http/http.h"

enum handler_result user_activity_start(struct http_exchange *exchange);
void user_activity_finish(struct http_exchange *exchange);
enum handler_result active_users_start(struct http_exchange *exchange);
void active_users_finish(struct http_exchange *exchange);
enum handler_result delete_user_start(struct http_exchange *exchange);
void delete_user_finish(struct http_exchange *exchange);

/* Streaks of @n days in a row, of which the last is @days[n - 1]: the longest, and the current one,
 * which ends on the last day, or on the one before it. */
void user_streaks(const uint8_t *days, size_t n, size_t *ret_longest, size_t *ret_current);

#endif
