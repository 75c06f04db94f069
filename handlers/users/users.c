/* users.c - GET /users/{user}/activity, GET /active/users, DELETE /users/{user}: users one by one.
 */
#include "handlers/routes.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "handlers/question/date_params.h"
#include "handlers/question/question.h"
#include "handlers/reply/csv.h"
#include "handlers/reply/problem.h"
#include "handlers/reply/query.h"
#include "handlers/reply/reply.h"
#include "handlers/text/check.h"
#include "handlers/text/plain.h"
#include "handlers/users/streaks.h"

#define DAYS_DEFAULT  1100 /* days of GET /users/{user}/activity, without from */
#define LIMIT_DEFAULT 100  /* users of GET /active/users, without limit */

static const struct param_spec activity_specs[] = {
    {"site", false}, {"action", false}, {"from", false}, {"to", false}};
static const struct param_spec users_specs[] = {{"site", false}, {"action", true}, {"from", false},
    {"to", false}, {"match", false}, {"min_days", false}, {"cursor", false}, {"limit", false}};
static const struct param_spec delete_specs[] = {{"site", false}};

static const struct csv_shape day_rows = {"days", {"date"}};
static const struct csv_shape user_rows = {"users", {"user"}};

struct users_state {
    struct date_params asked;
    struct activity_days window;
    struct activity_set set;
    uint8_t *active; /* owned: not 0 if the user was active, for each day of the window */
};

static void release(struct http_exchange *exchange)
{
    struct users_state *state = exchange->state;
    date_params_release(&state->asked);
    free(state->active);
    free(state);
}

/* Make the state, and read site and actions.  NULL: the response says what is wrong. */
static struct users_state *begin(
    struct http_exchange *exchange, const struct param_spec *specs, size_t n_specs)
{
    struct users_state *state = question_begin(exchange, sizeof(*state), release);
    return state != NULL && date_params_read(exchange, specs, n_specs, &state->asked) ? state
                                                                                      : NULL;
}

/* ---- GET /users/{user}/activity ---- */

enum handler_result user_activity_start(struct http_exchange *exchange)
{
    struct users_state *state = begin(exchange, PARAM_SPECS(activity_specs));
    if (state == NULL || !query_segment(exchange, "user", event_check_user) ||
        !date_params_window(exchange, &state->asked, DAYS_DEFAULT, &state->window)) {
        return HANDLER_REPLY;
    }
    state->active = calloc(state->window.n, 1);
    if (state->active == NULL) {
        (void)problem_no_memory(&exchange->response);
        return HANDLER_REPLY;
    }
    exchange->job.op = STORAGE_USER_DAYS;
    exchange->job.u.user_days = (struct user_days_job){
        .site = state->asked.site,
        .user = exchange->request.segment,
        .action = state->asked.actions[0],
        .days = state->window,
        .only_kept = !params_has(&state->asked.params, "from"),
        .active = state->active,
    };
    return HANDLER_WAIT;
}

void user_activity_finish(struct http_exchange *exchange)
{
    const struct users_state *state = exchange->state;
    const struct user_days_job *job = &exchange->job.u.user_days;
    if (exchange->job.err != STORAGE_OK) {
        date_params_failed(exchange, "from", state->window.first, job->oldest_day);
        return;
    }
    int64_t first = state->window.first;
    int64_t end = first + (int64_t)state->window.n;
    int64_t tomorrow = date_params_today(exchange, &state->asked) + 1;
    int64_t last = end < tomorrow ? end : tomorrow; /* no streak ends in the future */
    size_t n_past = last > first ? (size_t)(last - first) : 0;
    size_t longest = 0;
    size_t current = 0;
    json_int_t n = 0;
    json_t *days = json_array();
    for (size_t i = 0; i < state->window.n; i++) {
        if (state->active[i] != 0) {
            json_array_append_new(days, date_json(first + (int64_t)i));
            n++;
        }
    }
    streaks_find(state->active, n_past, &longest, &current);
    if (n_past < state->window.n && state->active[n_past] != 0) {
        size_t ignored;
        streaks_find(state->active, state->window.n, &longest, &ignored);
    }
    if (job->only_kept && job->oldest_day > first) {
        first = job->oldest_day < end ? job->oldest_day : end;
    }
    json_t *root = json_object();
    json_object_set_new(root, "site", text_json(state->asked.site));
    json_object_set_new(root, "user", text_json(exchange->request.segment));
    json_object_set_new(root, "action", text_json(state->asked.actions[0]));
    json_object_set_new(root, "from", date_json(first));
    json_object_set_new(root, "to", date_json(end));
    json_object_set_new(root, "days", days);
    json_object_set_new(root, "active_days", json_integer(n));
    json_object_set_new(root, "current_streak", json_integer((json_int_t)current));
    json_object_set_new(root, "longest_streak", json_integer((json_int_t)longest));
    csv_reply(exchange, 200, root, &day_rows);
}

/* ---- GET /active/users ---- */

/* Take decimal digits, without leading zeros, off the front of @text, and the '.' behind them. */
static bool take_decimal(struct slice *text, uint64_t max, uint64_t *ret)
{
    struct slice digits;
    return slice_take_until(text, '.', &digits) && text_number(digits, max, ret) &&
           (digits.n == 1 || digits.p[0] != '0');
}

/* The FNV-1a hash (Fowler, Noll, Vo) of @text, where @hash is that of the text before. */
static uint32_t mixed(uint32_t hash, struct slice text)
{
    for (size_t i = 0; i < text.n; i++) {
        hash = (hash ^ (unsigned char)text.p[i]) * 16777619u;
    }
    return hash;
}

/* A hash that tells questions apart: with the cursor of another question users would be left out.
 * (Days are not in the hash: today may change while a client goes from page to page.) */
static uint32_t question_hash(const struct users_state *state)
{
    static const uint32_t basis = 2166136261u;
    uint32_t hash = mixed(basis, state->asked.site) + state->set.all;
    hash += (uint32_t)state->set.min_days * 16777619u;
    for (size_t i = 0; i < state->asked.n_actions; i++) {
        hash += mixed(basis + 1, state->asked.actions[i]); /* a sum does not depend on the order */
    }
    return hash;
}

static void print_cursor(
    const struct users_state *state, const struct active_users_job *job, char ret[48])
{
    (void)snprintf(ret, 48, "%u.%llu.%08x", job->next_partition,
        (unsigned long long)job->next_index, (unsigned)question_hash(state));
}

/* Read the cursor, which is "<partition>.<index>.<hash of the question>". */
static bool read_cursor(struct http_exchange *exchange, const struct users_state *state)
{
    struct slice text;
    char hash[9];
    uint64_t partition = 0;
    uint64_t index = 0;
    if (!params_get(&state->asked.params, "cursor", &text)) {
        return true;
    }
    (void)snprintf(hash, sizeof(hash), "%08x", (unsigned)question_hash(state));
    if (!take_decimal(&text, PARTITIONS_MAX - 1, &partition) ||
        !take_decimal(&text, UINT32_MAX, &index) || !slice_equal(text, slice_of(hash))) {
        return query_refuse(exchange, "cursor",
            "must be the next_cursor of an answer to the same question (site, action, match and "
            "min_days)");
    }
    exchange->job.u.active_users.partition = (unsigned)partition;
    exchange->job.u.active_users.index = index;
    return true;
}

enum handler_result active_users_start(struct http_exchange *exchange)
{
    size_t limit = LIMIT_DEFAULT;
    struct users_state *state = begin(exchange, PARAM_SPECS(users_specs));
    if (state == NULL || !date_params_match(exchange, &state->asked, &state->set.all) ||
        !date_params_window(exchange, &state->asked, 1, &state->set.days) ||
        !query_number(
            exchange, &state->asked.params, "min_days", ACTIVITY_PAIRS_MAX, &state->set.min_days) ||
        !query_number(exchange, &state->asked.params, "limit", ACTIVITY_USERS_MAX, &limit)) {
        return HANDLER_REPLY;
    }
    state->set.n_actions = state->asked.n_actions;
    exchange->job.op = STORAGE_ACTIVE_USERS;
    exchange->job.u.active_users = (struct active_users_job){
        .asked = date_params_question(&state->asked, &state->set, 1),
        .limit = limit,
    };
    return read_cursor(exchange, state) ? HANDLER_WAIT : HANDLER_REPLY;
}

void active_users_finish(struct http_exchange *exchange)
{
    const struct users_state *state = exchange->state;
    const struct active_users_job *job = &exchange->job.u.active_users;
    char cursor[48];
    json_t *root = date_params_answer(exchange, &state->asked, &state->set.days, job->oldest_day);
    if (root == NULL) {
        return;
    }
    json_t *users = json_array();
    for (size_t i = 0; users != NULL && i < job->n_users; i++) {
        json_array_append_new(users, text_json(job->users[i]));
    }
    print_cursor(state, job, cursor);
    json_object_set_new(root, "match", json_string(state->set.all ? "all" : "any"));
    if (state->set.min_days > 0) {
        json_object_set_new(root, "min_days", json_integer((json_int_t)state->set.min_days));
    }
    json_object_set_new(root, "users", users);
    json_object_set_new(root, "next_cursor", job->more ? json_string(cursor) : json_null());
    if (job->more) { /* a row of CSV has no place for the cursor */
        (void)problem_add_header(&exchange->response, "X-Next-Cursor", cursor);
    }
    csv_reply(exchange, 200, root, &user_rows);
}

/* ---- DELETE /users/{user} ---- */

enum handler_result delete_user_start(struct http_exchange *exchange)
{
    struct users_state *state = begin(exchange, PARAM_SPECS(delete_specs));
    if (state == NULL || !query_segment(exchange, "user", event_check_user)) {
        return HANDLER_REPLY;
    }
    exchange->job.op = STORAGE_FORGET_USER;
    exchange->job.u.forget_user =
        (struct forget_user_job){.site = state->asked.site, .user = exchange->request.segment};
    return HANDLER_WAIT;
}

/* What remains of a user who is forgotten: figures that are made of many users cannot be freed of
 * one. */
static const struct {
    const char *what, *why;
} remaining[] = {
    {"pv", "page views and visits are sums; they hold no names"},
    {"uv",
        "the sketches behind distinct visitors keep a few bits of a keyed hash of the name, mixed "
        "with everybody's: nobody can be read from them or taken out of them"},
    {"seen",
        "a Bloom filter keeps bits that others share, of hashes: they cannot be cleared for one"},
    {"visits", "a keyed hash of the name and the time of the last event are kept until two visit "
               "timeouts have passed"},
};

void delete_user_finish(struct http_exchange *exchange)
{
    const struct users_state *state = exchange->state;
    const struct forget_user_job *job = &exchange->job.u.forget_user;
    enum storage_err err = exchange->job.err;
    if (err != STORAGE_OK) {
        problem_from_storage(
            &exchange->response, job->sent ? STORAGE_UNKNOWN : err, exchange->job.detail);
        return;
    }
    json_t *remains = json_array();
    for (size_t i = 0; i < sizeof(remaining) / sizeof(remaining[0]); i++) {
        json_array_append_new(
            remains, json_pack("{s:s,s:s}", "what", remaining[i].what, "why", remaining[i].why));
    }
    json_t *root = json_object();
    json_object_set_new(root, "site", text_json(state->asked.site));
    json_object_set_new(root, "user", text_json(exchange->request.segment));
    json_object_set_new(root, "forgotten", json_boolean(job->known));
    json_object_set_new(root, "bits_cleared", json_integer((json_int_t)job->bits));
    json_object_set_new(root, "remains", remains);
    reply_json(&exchange->response, 200, root);
}
