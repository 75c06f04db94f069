#include "handlers/question/count_reply.h"

#include <stdio.h>

#include "handlers/question/window_reply.h"
#include "handlers/reply/problem.h"
#include "handlers/text/timestamp.h"

/* Answer 422 for a series that cannot be had, and say which step works. */
static void count_reply_step(struct http_exchange *exchange, const struct window_params *asked)
{
    const struct count_job *job = &exchange->job.u.count;
    struct http_response *response = &exchange->response;
    enum storage_err err = exchange->job.err;
    const char *works = step_name(job->used);
    int most = job->step == STEP_AUTO ? STEP_AUTO_MAX : STEP_POINTS_MAX;
    if (err == STORAGE_TOO_BROAD && job->used == STEP_NONE) {
        window_too_broad(exchange, asked, job->whole_works);
    } else if (err == STORAGE_TOO_BROAD) {
        problem_reply_parameter(response, PROBLEM_UNACCEPTABLE, "step",
            "the series needs too many keys; step=%s works", works);
    } else if (job->used == STEP_NONE && job->asked.answered.from_s < job->asked.answered.to_s) {
        char from[TIMESTAMP_TEXT];
        char to[TIMESTAMP_TEXT];
        timestamp_print(job->asked.answered.from_s, from);
        timestamp_print(job->asked.answered.to_s, to);
        problem_reply_parameter(response, PROBLEM_UNACCEPTABLE, "step",
            "the borders of no step in this time zone are still kept for all of this window; for "
            "from=%s&to=%s they are",
            from, to);
    } else if (err == STORAGE_TOO_FINE && job->used == STEP_NONE) {
        problem_reply_parameter(response, PROBLEM_UNACCEPTABLE, "step",
            "no step in this time zone has borders that are still kept for this window: ask for a "
            "later one, without tz or without step");
    } else if (err == STORAGE_TOO_FINE) {
        problem_reply_parameter(response, PROBLEM_UNACCEPTABLE, "step",
            "the step is finer than what is kept for this window; step=%s works", works);
    } else if (job->used == STEP_NONE) {
        problem_reply_parameter(response, PROBLEM_UNACCEPTABLE, "step",
            "the series would have more than %d points, or its keys are not kept or too many, with "
            "any step: ask for a later or shorter window, or without step",
            most);
    } else {
        problem_reply_parameter(response, PROBLEM_UNACCEPTABLE, "step",
            "the series would have more than %d points; step=%s works", most, works);
    }
}

/* Answer 422: say which window could be answered, and with which step. */
static void count_reply_not_kept(struct http_exchange *exchange, const struct count_job *job)
{
    char how[64] = "";
    if (job->outer_works) {
        (void)snprintf(how, sizeof(how), "%s", WINDOW_OUTER);
    } else if (job->used != job->step) {
        (void)snprintf(how, sizeof(how), " with%s%s",
            job->used == STEP_NONE ? "out step" : " step=", step_name(job->used));
    }
    window_not_kept(exchange, job->asked.answered, how);
}

void count_failed(struct http_exchange *exchange, const struct window_params *asked)
{
    const struct count_job *job = &exchange->job.u.count;
    enum storage_err err = exchange->job.err;
    if (err == STORAGE_TOO_FINE || err == STORAGE_TOO_MANY || err == STORAGE_TOO_BROAD) {
        count_reply_step(exchange, asked);
    } else if (err == STORAGE_NOT_KEPT) {
        count_reply_not_kept(exchange, job);
    } else {
        window_failed(exchange, asked, job->asked.answered);
    }
}
