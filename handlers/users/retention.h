/* retention.h - GET /retention: of those active in a period, how many came back.
 *
 * Layer: handlers.
 * A cohort is everyone active in a period (a day, a week that begins on Monday, a month); offset n
 * is the n-th period behind it.  Several cohorts: those of successive periods, each up to the one
 * that has today in it, which gives a triangle.
 */
#ifndef HANDLERS_USERS_RETENTION_H
#define HANDLERS_USERS_RETENTION_H

#include "handlers/http/http.h"

enum handler_result retention_start(struct http_exchange *exchange);
void retention_finish(struct http_exchange *exchange);

#endif
