/* date_params.h - the parameters of questions about days: site, actions, dates and windows of them.
 *
 * Layer: handlers, pure.  Thread-safe.
 * A date is YYYY-MM-DD, of the site's reporting zone.  A window of days is [from, to); from and to
 * may also be given as all times may (timestamp.h), and stand for the days that they touch.  Days
 * are numbers, counted from 1970-01-01.
 *
 * All functions that return bool: false means that the response says what is wrong.
 */
#ifndef HANDLERS_QUESTION_DATE_PARAMS_H
#define HANDLERS_QUESTION_DATE_PARAMS_H

#include <jansson.h>

#include "handlers/http/http.h"
#include "handlers/text/params.h"

/* Zeroed it is empty; slices point into params. */
struct date_params {
    struct params params;
    struct slice site;
    const struct zone *zone; /* the site's: whose days are asked for */
    struct slice *actions;   /* owned; at least one, each once */
    size_t n_actions;
};

/* Read the exchange's query, which has @specs, and of it site and action. */
bool date_params_read(struct http_exchange *exchange, const struct param_spec *specs,
    size_t n_specs, struct date_params *ret);
void date_params_release(struct date_params *p);

/* The site's today, at the time of the request. */
int64_t date_params_today(const struct http_exchange *exchange, const struct date_params *p);

/* A date; @ret untouched if it was not given. */
bool date_params_date(
    struct http_exchange *exchange, const struct date_params *p, const char *name, int64_t *ret);

/* from and to.  Not given: to is the end of today, from @n_default days before to.  At most
 * ACTIVITY_PAIRS_MAX bitmaps. */
bool date_params_window(struct http_exchange *exchange, const struct date_params *p,
    size_t n_default, struct activity_days *ret);

/* A number of at most @max, at least 1; @ret untouched if it was not given. */
bool date_params_number(struct http_exchange *exchange, const struct date_params *p,
    const char *name, size_t max, size_t *ret);

/* match=any or all. */
bool date_params_match(struct http_exchange *exchange, const struct date_params *p, bool *ret_all);

/* "2026-11-20"; @text holds 11 bytes. */
void date_print(int64_t day, char text[static 11]);
json_t *date_json(int64_t day);

/* The answer to a job that failed; @parameter is the one that asked for days that are not kept. */
void date_params_failed(struct http_exchange *exchange, const char *parameter, int64_t oldest_day);

#endif
