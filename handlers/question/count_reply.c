#include "handlers/question/count_reply.h"

#include <stdio.h>

#include "handlers/question/window_reply.h"
#include "handlers/reply/problem.h"
#include "handlers/text/timestamp.h"

void count_step_detail(const struct storage_job *job, char *to, size_t n)
{
    const struct count_job *count = &job->u.count;
    bool none = count->used == STEP_NONE;
    const char *works = step_name(count->used);
    int most = count->step == STEP_AUTO ? STEP_AUTO_MAX : STEP_POINTS_MAX;
    if (none && count->asked.answered.from_s < count->asked.answered.to_s) {
        char from_text[TIMESTAMP_TEXT];
        char to_text[TIMESTAMP_TEXT];
        timestamp_print(count->asked.answered.from_s, from_text);
        timestamp_print(count->asked.answered.to_s, to_text);
        (void)snprintf(to, n,
            "the borders of no step in this time zone are still kept for all of this window; for "
            "from=%s&to=%s they are",
            from_text, to_text);
    } else if (none && job->err == STORAGE_TOO_FINE) {
        (void)snprintf(to, n,
            "no step in this time zone has borders that are still kept for this window: ask for a "
            "later one, without tz or without step");
    } else if (job->err == STORAGE_TOO_FINE) {
        (void)snprintf(
            to, n, "the step is finer than what is kept for this window; step=%s works", works);
    } else if (none) {
        (void)snprintf(to, n,
            "the series would have more than %d points, or its keys are not kept or too many, with "
            "any step: ask for a later or shorter window, or without step",
            most);
    } else {
        (void)snprintf(
            to, n, "the series would have more than %d points; step=%s works", most, works);
    }
}

/* Answer 422 for a series that cannot be had, and say which step works. */
static void count_reply_step(struct http_exchange *exchange, const struct window_params *asked)
{
    const struct count_job *job = &exchange->job.u.count;
    struct http_response *response = &exchange->response;
    char detail[COUNT_STEP_DETAIL];
    if (exchange->job.err != STORAGE_TOO_BROAD) {
        count_step_detail(&exchange->job, detail, sizeof(detail));
        problem_reply_parameter(response, PROBLEM_UNACCEPTABLE, "step", "%s", detail);
    } else if (job->used == STEP_NONE) {
        window_too_broad(exchange, asked, job->whole_works);
    } else {
        problem_reply_parameter(response, PROBLEM_UNACCEPTABLE, "step",
            "the series needs too many keys; step=%s works", step_name(job->used));
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
