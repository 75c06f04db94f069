#include "handlers/question/date_params.h"

#include <stdlib.h>

#include "handlers/access/access.h"
#include "handlers/http/app.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/query.h"
#include "handlers/reply/reply.h"
#include "handlers/text/ascii.h"
#include "handlers/text/check.h"
#include "handlers/text/plain.h"
#include "handlers/text/timestamp.h"
#include "storage/time/day.h"
#include "storage/time/units.h"

#define ACTIONS_MAX 100

void date_params_release(struct date_params *p)
{
    params_release(&p->params);
    free(p->actions);
    *p = (struct date_params){0};
}

bool date_params_action(struct http_exchange *exchange, struct date_params *p, const char *name,
    struct slice action, size_t *ret_at)
{
    const char *fault = event_check_action(action);
    size_t at = 0;
    if (fault != NULL) {
        return query_refuse(exchange, name, fault);
    }
    while (at < p->n_actions && !slice_equal(p->actions[at], action)) {
        at++;
    }
    if (at == p->n_actions) {
        p->actions[p->n_actions++] = action;
    }
    *ret_at = at;
    return true;
}

static bool read_actions(struct http_exchange *exchange, struct date_params *p)
{
    size_t ignored;
    if (params_count(&p->params, "action") > ACTIONS_MAX) {
        return query_refuse(exchange, "action", "at most 100 actions");
    }
    p->actions = calloc(p->params.n + 1, sizeof(*p->actions)); /* each parameter may be one */
    if (p->actions == NULL) {
        return problem_no_memory(&exchange->response);
    }
    for (const struct param *at = NULL; (at = params_next(&p->params, "action", at)) != NULL;) {
        if (!date_params_action(exchange, p, "action", at->value, &ignored)) {
            return false;
        }
    }
    if (p->n_actions == 0) {
        p->actions[p->n_actions++] = ACTION_ACTIVE;
    }
    return true;
}

bool date_params_read(struct http_exchange *exchange, const struct param_spec *specs,
    size_t n_specs, struct date_params *ret)
{
    *ret = (struct date_params){0};
    if (!query_read(exchange, specs, n_specs, &ret->params) ||
        !access_read_site(exchange, &ret->params, &ret->site)) {
        return false;
    }
    ret->zone = storage_site_zone(exchange->app->storage, ret->site);
    return read_actions(exchange, ret);
}

int64_t date_params_today(const struct http_exchange *exchange, const struct date_params *p)
{
    return bucket_day(p->zone, exchange->request.now_ms / 1000);
}

/* Has @text the form YYYY-MM-DD? */
static bool is_date(struct slice text)
{
    if (text.n != 10) {
        return false;
    }
    for (size_t i = 0; i < text.n; i++) {
        bool dash = i == 4 || i == 7;
        if (dash ? text.p[i] != '-' : !ascii_is_digit(text.p[i])) {
            return false;
        }
    }
    return true;
}

bool date_params_date(
    struct http_exchange *exchange, const struct date_params *p, const char *name, int64_t *ret)
{
    struct slice text;
    const char *detail = "must be a date, YYYY-MM-DD";
    int64_t at_s = 0;
    bool is_now;
    if (!params_get(&p->params, name, &text)) {
        return true;
    }
    if (!is_date(text) || !timestamp_parameter(text, zone_utc(), exchange->request.now_ms,
                              TIMESTAMP_DOWN, &at_s, &is_now, &detail)) {
        return query_refuse(exchange, name, detail);
    }
    *ret = at_s / DAY_S;
    return true;
}

/* Read one border of a window, a date or a time, as a day.  A time that is rounded up becomes the
 * first day that begins at it or later. */
static bool read_border(struct http_exchange *exchange, const struct date_params *p,
    const char *name, enum timestamp_round round, int64_t *ret)
{
    struct slice text;
    const char *detail = NULL;
    int64_t at_s = 0;
    bool is_now;
    if (!params_get(&p->params, name, &text)) {
        return true;
    }
    if (is_date(text)) {
        return date_params_date(exchange, p, name, ret);
    }
    if (!timestamp_parameter(
            text, p->zone, exchange->request.now_ms, round, &at_s, &is_now, &detail)) {
        return query_refuse(exchange, name, detail);
    }
    int64_t day = round == TIMESTAMP_DOWN || at_s == 0 ? bucket_day(p->zone, at_s)
                                                       : bucket_day(p->zone, at_s - 1) + 1;
    *ret = day < 0 ? 0 : day;
    return true;
}

bool date_params_window(struct http_exchange *exchange, const struct date_params *p,
    size_t n_default, struct activity_days *ret)
{
    int64_t to = date_params_today(exchange, p) + 1;
    if (!read_border(exchange, p, "to", TIMESTAMP_UP, &to)) {
        return false;
    }
    int64_t from = to > (int64_t)n_default ? to - (int64_t)n_default : 0;
    if (!read_border(exchange, p, "from", TIMESTAMP_DOWN, &from)) {
        return false;
    }
    if (to <= from) {
        return query_refuse(exchange, "to", "must be later than from");
    }
    if (!date_params_bounded(exchange, "from", (size_t)(to - from) * p->n_actions)) {
        return false;
    }
    *ret = (struct activity_days){.first = from, .n = (size_t)(to - from)};
    return true;
}

bool date_params_new_within(struct http_exchange *exchange, struct date_params *p)
{
    struct slice text;
    uint64_t days = 0;
    if (!params_get(&p->params, "new_within", &text)) {
        return true;
    }
    struct slice digits = {text.p, text.n - 1};
    if (text.p[0] == '0' || text.p[digits.n] != 'd' ||
        !text_number(digits, ACTIVITY_PAIRS_MAX, &days)) {
        problem_reply_parameter(&exchange->response, PROBLEM_MALFORMED, "new_within",
            "must be a number of days, 1d to %dd", ACTIVITY_PAIRS_MAX);
        return false;
    }
    p->new_days = days;
    return true;
}

void date_params_put_new_within(json_t *answer, const struct date_params *p)
{
    if (p->new_days > 0) {
        json_object_set_new(answer, "new_within", json_sprintf("%zud", p->new_days));
    }
}

struct activity_question date_params_question(
    const struct date_params *p, const struct activity_set *sets, size_t n_sets)
{
    return (struct activity_question){
        .site = p->site,
        .actions = p->actions,
        .n_actions = p->n_actions,
        .sets = sets,
        .n_sets = n_sets,
        .new_days = p->new_days,
    };
}

json_t *date_params_answer(struct http_exchange *exchange, const struct date_params *p,
    const struct activity_days *window, int64_t oldest_day)
{
    if (exchange->job.err != STORAGE_OK) {
        date_params_failed(exchange, "from", window->first, oldest_day);
        return NULL;
    }
    json_t *root = json_object();
    if (root == NULL) {
        (void)problem_no_memory(&exchange->response);
        return NULL;
    }
    json_object_set_new(root, "site", text_json(p->site));
    json_object_set_new(root, "from", date_json(window->first));
    json_object_set_new(root, "to", date_json(window->first + (int64_t)window->n));
    return root;
}

bool date_params_bounded(struct http_exchange *exchange, const char *parameter, size_t n)
{
    if (n > ACTIVITY_PAIRS_MAX) {
        problem_reply_parameter(&exchange->response, PROBLEM_UNACCEPTABLE, parameter,
            "at most %d days, all actions taken together", ACTIVITY_PAIRS_MAX);
    }
    return n <= ACTIVITY_PAIRS_MAX;
}

bool date_params_match(struct http_exchange *exchange, const struct date_params *p, bool *ret_all)
{
    struct slice text = SLICE("any");
    (void)params_get(&p->params, "match", &text);
    *ret_all = slice_equal(text, SLICE("all"));
    return *ret_all || slice_equal(text, SLICE("any")) ||
           query_refuse(exchange, "match", "must be any or all");
}

void date_print(int64_t day, char text[static 11])
{
    char whole[TIMESTAMP_TEXT];
    timestamp_print(day * DAY_S, whole);
    memcpy(text, whole, 10);
    text[10] = '\0';
}

json_t *date_json(int64_t day)
{
    char text[11];
    date_print(day, text);
    return json_string(text);
}

void date_params_failed(
    struct http_exchange *exchange, const char *parameter, int64_t first_day, int64_t oldest_day)
{
    const struct storage_job *job = &exchange->job;
    char date[11];
    if (job->err != STORAGE_NOT_KEPT) {
        problem_from_storage(&exchange->response, job->err, job->detail);
        return;
    }
    date_print(oldest_day, date);
    if (first_day < oldest_day) {
        problem_reply_parameter(&exchange->response, PROBLEM_UNACCEPTABLE, parameter,
            "days before %s are not kept any more (--keep-days); ask from that day on", date);
    } else {
        problem_reply_parameter(&exchange->response, PROBLEM_UNACCEPTABLE, "new_within",
            "days before %s are not kept any more (--keep-days); so far back nobody knows who is "
            "new",
            date);
    }
}
