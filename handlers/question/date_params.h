/* date_params.h - the parameters of questions about days: site, actions, dates and windows.
 *
 * Layer: handlers, pure.  Thread-safe.
 *
 * A date is YYYY-MM-DD, in the calendar of the site's reporting zone.  A window of days is [from,
 * to).  Its borders may also be times of any form (text/timestamp.h).  Then the window has the days
 * that the span of time touches.  In C a day is a number, counted from 1970-01-01.
 *
 * All functions that return bool: false means that the response says what is wrong.
 */
#ifndef HANDLERS_QUESTION_DATE_PARAMS_H
#define HANDLERS_QUESTION_DATE_PARAMS_H

#include <jansson.h>

#include "handlers/http/http.h"
#include "handlers/text/params.h"
#include "storage/base/compiler.h"

/* What was asked.  A zeroed struct is empty.  Slices point into params. */
struct date_params {
    struct params params; /* owned */
    struct slice site;
    const struct zone *zone; /* the site's zone, in whose calendar the days lie */
    struct slice *actions;   /* owned; n_actions of them, each once; there is at least one */
    size_t n_actions;
    size_t new_days; /* the days of new_within; 0: it was not given */
};

/* Read the exchange's query, which may have the parameters of @specs, and from it site and actions.
 * Release @ret in either case. */
bool date_params_read(struct http_exchange *exchange, const struct param_spec *specs,
    size_t n_specs, struct date_params *ret) MUST_CHECK;
void date_params_release(struct date_params *p);

/* The site's day at the time of the request. */
int64_t date_params_today(const struct http_exchange *exchange, const struct date_params *p);

/* Read the parameter @name, a date.  @ret is untouched if the date was not given. */
bool date_params_date(struct http_exchange *exchange, const struct date_params *p, const char *name,
    int64_t *ret) MUST_CHECK;

/* Is @action, the value of the parameter @name, the name of an action?  It is added to p->actions
 * if it is not there; *ret_at is its position there. */
bool date_params_action(struct http_exchange *exchange, struct date_params *p, const char *name,
    struct slice action, size_t *ret_at) MUST_CHECK;

/* Read from and to.  If `to` was not given it is the end of today; if `from` was not given it is
 * @n_default days before `to`.  More than ACTIVITY_PAIRS_MAX days times actions are refused. */
bool date_params_window(struct http_exchange *exchange, const struct date_params *p,
    size_t n_default, struct activity_days *ret) MUST_CHECK;

/* Read new_within, a number of days such as "90d", into p->new_days. */
bool date_params_new_within(struct http_exchange *exchange, struct date_params *p) MUST_CHECK;

/* Put new_within into @answer, if it was given. */
void date_params_put_new_within(json_t *answer, const struct date_params *p);

/* The question as storage takes it, about @n_sets sets of users.  It points into @p and @sets. */
struct activity_question date_params_question(
    const struct date_params *p, const struct activity_set *sets, size_t n_sets);

/* The job about @window is done: begin the answer, an object with site, from and to.  NULL: the
 * job failed, or memory is out; the response says so.  @oldest_day: see date_params_failed(). */
json_t *date_params_answer(struct http_exchange *exchange, const struct date_params *p,
    const struct activity_days *window, int64_t oldest_day) MUST_CHECK;

/* Are @n bitmaps few enough for one question?  (There is one for each day and action.)  If not, the
 * response says that @parameter asks for too many. */
bool date_params_bounded(
    struct http_exchange *exchange, const char *parameter, size_t n) MUST_CHECK;

/* Read match: any, which is the default, or all. */
bool date_params_match(
    struct http_exchange *exchange, const struct date_params *p, bool *ret_all) MUST_CHECK;

/* Write @day as "2026-11-20" and a NUL. */
void date_print(int64_t day, char text[static 11]);

/* @day as a JSON string, "2026-11-20": a new reference; NULL if memory is out. */
json_t *date_json(int64_t day);

/* Answer for the exchange's job, which failed.  Where it failed because days are not kept any more,
 * @oldest_day is the first day that is kept.  @parameter asked for the days from @first_day on; if
 * those are kept, it is new_within that goes too far back. */
void date_params_failed(
    struct http_exchange *exchange, const char *parameter, int64_t first_day, int64_t oldest_day);

#endif
