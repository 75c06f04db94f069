/* retention.c - GET /retention: of the users active in a period, how many came back.
 *
 * A period is a day, a week that begins on Monday, or a month.  A cohort is everyone who was active
 * in a period; offset n is the n-th period after it.  Several cohorts are those of successive
 * periods.  Each of them is followed up to the period that holds today, which gives a triangle.
 *
 * Users may come back by another action, and the cohorts may have new users only.  Then the users
 * of a period who came back are another set than the cohort of that period. */
#include "handlers/routes.h"

#include <jansson.h>
#include <stdlib.h>

#include "handlers/question/date_params.h"
#include "handlers/question/question.h"
#include "handlers/reply/csv.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/query.h"
#include "handlers/reply/reply.h"
#include "storage/time/zone.h"

#define OFFSETS_DEFAULT 7
#define PERIODS_MAX     366 /* offsets at most, and cohorts at most */

static const struct param_spec specs[] = {{"site", false}, {"action", false}, {"cohort", false},
    {"days", false}, {"period", false}, {"cohorts", false}, {"return", false},
    {"new_within", false}};

enum period { PERIOD_DAY, PERIOD_WEEK, PERIOD_MONTH };
static const char *const period_names[] = {
    [PERIOD_DAY] = "day", [PERIOD_WEEK] = "week", [PERIOD_MONTH] = "month"};

static const struct csv_shape rows = {
    "cohorts/returned", {"site", "action", "cohort", "size", "offset", "users", "rate"}};

struct retention_state {
    struct date_params asked;
    enum period period;
    size_t n_offsets, n_cohorts;
    bool triangle;
    size_t back;               /* position of the action by which users come back */
    struct activity_set *sets; /* owned: n_periods periods, from the first cohort's on; then the
                                  cohorts, if they are other sets */
    size_t n_periods, n_sets;
    struct activity_count *counts; /* owned: for each cohort its size, then one for each offset */
    size_t n_counts;
};

static void release(struct http_exchange *exchange)
{
    struct retention_state *state = exchange->state;
    date_params_release(&state->asked);
    free(state->sets);
    free(state->counts);
    free(state);
}

/* The period that holds @day. */
static struct activity_days period_at(enum period period, int64_t day)
{
    if (period == PERIOD_WEEK) { /* 1970-01-01 was a Thursday */
        return (struct activity_days){.first = day - (day + 3) % 7, .n = 7};
    }
    if (period == PERIOD_MONTH) {
        struct civil_date first = civil_from_days(day);
        first.day = 1;
        return (struct activity_days){
            .first = civil_to_days(first), .n = (size_t)civil_month_days(first.year, first.month)};
    }
    return (struct activity_days){.first = day, .n = 1};
}

static bool read_period(struct http_exchange *exchange, struct retention_state *state)
{
    struct slice text = SLICE("day");
    (void)params_get(&state->asked.params, "period", &text);
    for (int p = PERIOD_DAY; p <= PERIOD_MONTH; p++) {
        if (slice_equal(text, slice_of(period_names[p]))) {
            state->period = (enum period)p;
            return true;
        }
    }
    return query_refuse(exchange, "period", "must be day, week or month");
}

static bool read_question(
    struct http_exchange *exchange, struct retention_state *state, int64_t *ret_day)
{
    struct slice back;
    const struct params *params = &state->asked.params;
    state->n_offsets = OFFSETS_DEFAULT;
    state->n_cohorts = 1;
    state->triangle = params_has(params, "cohorts");
    if (!params_has(params, "cohort")) {
        return query_refuse(exchange, "cohort", "is required: a date, YYYY-MM-DD");
    }
    return date_params_date(exchange, &state->asked, "cohort", ret_day) &&
           query_number(exchange, params, "days", PERIODS_MAX, &state->n_offsets) &&
           query_number(exchange, params, "cohorts", PERIODS_MAX, &state->n_cohorts) &&
           date_params_new_within(exchange, &state->asked) &&
           (!params_get(params, "return", &back) ||
               date_params_action(exchange, &state->asked, "return", back, &state->back)) &&
           read_period(exchange, state);
}

/* Is a cohort another set than the users who came back in its period? */
static bool cohorts_differ(const struct retention_state *state)
{
    return state->back != 0 || state->asked.new_days > 0;
}

/* Make the sets: the period of @day, and the periods after it that are not in the future; then the
 * cohorts.  *ret_days is how many bitmaps the sets need.  False: out of memory. */
static bool make_sets(struct retention_state *state, int64_t day, int64_t today, size_t *ret_days)
{
    size_t most = state->n_cohorts + state->n_offsets;
    struct activity_days days = period_at(state->period, day);
    state->sets = calloc(most + state->n_cohorts, sizeof(*state->sets));
    if (state->sets == NULL) {
        return false;
    }
    *ret_days = state->asked.new_days;
    do {
        state->sets[state->n_periods++] =
            (struct activity_set){.action = state->back, .n_actions = 1, .days = days};
        *ret_days += days.n;
        days = period_at(state->period, days.first + (int64_t)days.n);
    } while (state->n_periods < most && days.first <= today);
    if (state->n_cohorts > state->n_periods) {
        state->n_cohorts = state->n_periods;
    }
    state->n_sets = state->n_periods;
    for (size_t c = 0; cohorts_differ(state) && c < state->n_cohorts; c++) {
        struct activity_set *cohort = &state->sets[state->n_sets++];
        *cohort = state->sets[c];
        cohort->action = 0;
        cohort->only_new = state->asked.new_days > 0;
        *ret_days += state->back != 0 ? cohort->days.n : 0;
    }
    return true;
}

static size_t offsets_of(const struct retention_state *state, size_t cohort)
{
    size_t behind = state->n_periods - cohort - 1;
    return behind < state->n_offsets ? behind : state->n_offsets;
}

static bool make_counts(struct retention_state *state)
{
    size_t n = 0;
    for (size_t c = 0; c < state->n_cohorts; c++) {
        n += 1 + offsets_of(state, c);
    }
    state->counts = calloc(n + 1, sizeof(*state->counts));
    if (state->counts == NULL) {
        return false;
    }
    for (size_t c = 0; c < state->n_cohorts; c++) {
        size_t cohort = cohorts_differ(state) ? state->n_periods + c : c;
        for (size_t o = 0; o <= offsets_of(state, c); o++) {
            size_t back = o == 0 ? cohort : c + o;
            state->counts[state->n_counts++] =
                (struct activity_count){.a = (uint32_t)cohort, .b = (uint32_t)back};
        }
    }
    return true;
}

enum handler_result retention_start(struct http_exchange *exchange)
{
    int64_t day = 0;
    size_t n_days = 0;
    struct retention_state *state = question_begin(exchange, sizeof(*state), release);
    if (state == NULL || !date_params_read(exchange, PARAM_SPECS(specs), &state->asked) ||
        !read_question(exchange, state, &day)) {
        return HANDLER_REPLY;
    }
    if (!make_sets(state, day, date_params_today(exchange, &state->asked), &n_days) ||
        !make_counts(state)) {
        (void)problem_no_memory(&exchange->response);
        return HANDLER_REPLY;
    }
    if (n_days > ACTIVITY_PAIRS_MAX || state->n_counts > ACTIVITY_PAIRS_MAX) {
        problem_reply_parameter(&exchange->response, PROBLEM_UNACCEPTABLE, "cohorts",
            "at most %d figures, from as many days", ACTIVITY_PAIRS_MAX);
        return HANDLER_REPLY;
    }
    exchange->job.op = STORAGE_ACTIVITY;
    exchange->job.u.activity = (struct activity_job){
        .asked = date_params_question(&state->asked, state->sets, state->n_sets),
        .counts = state->counts,
        .n_counts = state->n_counts,
    };
    return HANDLER_WAIT;
}

/* Put cohort @c into @object; its counts begin at @counts. */
static void put_cohort(json_t *object, const struct retention_state *state, size_t c,
    const struct activity_count *counts)
{
    uint64_t size = counts[0].users;
    json_t *returned = json_array();
    for (size_t o = 1; returned != NULL && o <= offsets_of(state, c); o++) {
        double rate = size == 0 ? 0 : (double)counts[o].users / (double)size;
        json_array_append_new(returned, json_pack("{s:I,s:I,s:f}", "offset", (json_int_t)o, "users",
                                            (json_int_t)counts[o].users, "rate", rate));
    }
    json_object_set_new(object, "cohort", date_json(state->sets[c].days.first));
    json_object_set_new(object, "size", json_integer((json_int_t)size));
    json_object_set_new(object, "returned", returned);
}

void retention_finish(struct http_exchange *exchange)
{
    const struct retention_state *state = exchange->state;
    const struct activity_count *counts = state->counts;
    if (exchange->job.err != STORAGE_OK) {
        date_params_failed(
            exchange, "cohort", state->sets[0].days.first, exchange->job.u.activity.oldest_day);
        return;
    }
    json_t *root = json_object();
    json_object_set_new(root, "site", text_json(state->asked.site));
    json_object_set_new(root, "action", text_json(state->asked.actions[0]));
    if (params_has(&state->asked.params, "return")) {
        json_object_set_new(root, "return", text_json(state->asked.actions[state->back]));
    }
    date_params_put_new_within(root, &state->asked);
    json_object_set_new(root, "period", json_string(period_names[state->period]));
    if (!state->triangle) {
        put_cohort(root, state, 0, counts);
        csv_reply(exchange, 200, root, &rows);
        return;
    }
    json_t *cohorts = json_array();
    for (size_t c = 0; cohorts != NULL && c < state->n_cohorts; c++) {
        json_t *cohort = json_object();
        put_cohort(cohort, state, c, counts);
        json_array_append_new(cohorts, cohort);
        counts += 1 + offsets_of(state, c);
    }
    json_object_set_new(root, "cohorts", cohorts);
    csv_reply(exchange, 200, root, &rows);
}
