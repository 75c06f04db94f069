/* seen.c - has a user seen a page?  Looks at events that wait, at logs of pairs, and at filters. */
#include "storage/read/kept_state.h"
#include "storage/read/operation.h"

#include "storage/job/counted_name.h"
#include "storage/log/waiting.h"
#include "storage/read/page_sets.h"
#include "storage/read/pipeline.h"
#include "storage/redis/resp.h"
#include "storage/schema/hashed_event.h"
#include "storage/schema/key.h"
#include "storage/seen/bits.h"

struct question {
    struct core *core;
    struct waiting waiting; /* events that are acknowledged and not counted yet */
    struct pipeline pipe;
    struct seen_job *job;
    struct visitor_id user;
    unsigned partition;
    const char *tag;
    struct wanted wanted;                  /* the pages, each by both its names */
    bool has_others;                       /* a page has two names that differ */
    int64_t now_s;                         /* by Redis's clock */
    int64_t latest_s;                      /* the latest that this clock is known to have been */
    struct bucket months[SEEN_MONTHS_MAX]; /* the months at hand */
    struct seen_filter filters[SEEN_MONTHS_MAX];
    unsigned n_months;
    double of_page; /* the rate at which the filters so far say yes to a page by chance */
};

static void want(struct question *q, struct slice page)
{
    wanted_add(&q->wanted, seen_fingerprint(&q->user, page_hash(q->job->site, page)));
}

static enum storage_err seen_prepare(struct question *q)
{
    struct core *core = q->core;
    const struct secret *secret = atomic_load(&core->secret);
    if (secret == NULL) {
        return STORAGE_DOWN;
    }
    identity_user(secret, q->job->site, q->job->user, &q->user);
    if (!wanted_expect(&q->wanted, 2 * q->job->n_pages)) {
        return STORAGE_NOMEM;
    }
    for (size_t i = 0; i < q->job->n_pages; i++) {
        struct slice page = q->job->pages[i];
        struct slice other = q->job->other_name(q->job->names, page);
        q->has_others |= !slice_equal(page, other);
        want(q, page);
        want(q, other);
    }
    q->partition = visitor_partition(&core->partitions, &q->user);
    q->tag = core->partitions.tag[q->partition];
    q->now_s = redis_clock_ms(&core->clock) / 1000;
    q->latest_s = core_latest_s(core, q->now_s);
    return STORAGE_OK;
}

/* Take an event of the user that waits to be counted. */
static void take_waiting(void *data, const struct chunk_event *event)
{
    struct question *q = data;
    if (event->page.n > 0 && !event_name_is(event->page)) {
        uint64_t page = page_hash(event->site, event->page);
        uint64_t fingerprint = seen_fingerprint(&q->user, page);
        wanted_find_in_log(&q->wanted, (const char *)&fingerprint, sizeof(fingerprint));
    }
}

static void ask_key(struct question *q, const char *command, struct bucket month, const char *what)
{
    struct key key;
    resp_slice(pipeline_command(&q->pipe, q->partition, command, 1),
        key_seen(&key, q->tag, q->job->site, month, what));
}

static void ask_time(struct question *q)
{
    (void)pipeline_command(&q->pipe, q->partition, "TIME", 0);
    kept_state_ask(q->core, &q->pipe, q->partition);
    struct buffer *out = pipeline_command(&q->pipe, q->partition, "HGET", 2);
    key_put(out, q->tag, "state");
    resp_text(out, "over");
}

/* Read Redis's clock and the partition's state.  The clock says which months may hold what was
 * acknowledged before.  The state says how late the clock was when that was counted: it may have
 * been set back since. */
static bool read_time(struct question *q)
{
    const struct reply *time = pipeline_take(&q->pipe);
    if (time == NULL) {
        return false;
    }
    int64_t us = reply_time_us(time);
    core_time_of(q->core, q->partition, us);
    q->now_s = us / 1000000;
    bool has_state = kept_state_take(q->core, &q->pipe, q->partition);
    const struct reply *over = has_state ? pipeline_take(&q->pipe) : NULL;
    if (over == NULL) {
        return false;
    }
    int64_t over_s = partition_over_s(over);
    q->latest_s = core_latest_s(q->core, over_s > q->now_s ? over_s : q->now_s);
    return true;
}

/* Read of each month at hand the log, then the log that is being folded, then the filter: in this
 * order (see seen/layout.h). */
static bool read_logs(struct question *q, const struct bloom_params *params)
{
    struct pipeline *p = &q->pipe;
    for (unsigned m = 0; m < q->n_months; m++) {
        ask_key(q, "GET", q->months[m], "log");
        ask_key(q, "GET", q->months[m], "old");
        ask_key(q, "HGETALL", q->months[m], "filter");
    }
    ask_time(q);
    if (!pipeline_send(p, false)) {
        return false;
    }
    for (unsigned m = 0; m < q->n_months; m++) {
        for (int i = 0; i < 2; i++) {
            const struct reply *log = pipeline_take(p);
            if (log == NULL) {
                return false;
            }
            if (log->type == REPLY_TEXT) {
                wanted_find_in_log(&q->wanted, log->text.p, log->text.n);
            } else if (log->type != REPLY_NIL) {
                return pipeline_foreign(p, "a log of who saw what");
            }
        }
        const struct reply *filter = pipeline_take(p);
        if (filter == NULL) {
            return false;
        }
        if (!seen_filter_read(filter, params, &q->filters[m])) {
            return pipeline_foreign(p, "a filter's key");
        }
    }
    return read_time(q);
}

/* Turn to the months from @newest on back.  False: none of them is kept. */
static bool turn_to(struct question *q, struct bucket newest)
{
    q->n_months = seen_months(newest, q->now_s, q->core->config.seen.keep_s, q->months);
    return q->n_months > 0;
}

/* Read the logs of the newest months.  A month may have begun that was not known of. */
static bool read_newest_logs(struct question *q, const struct bloom_params *params)
{
    do {
        if (!turn_to(q, seen_newest_month(q->latest_s)) || !read_logs(q, params)) {
            return false;
        }
    } while (seen_newest_month(q->latest_s).start_s > q->months[0].start_s);
    return true;
}

/* Is the answer known before any bit was read? */
static bool is_decided(const void *question)
{
    const struct question *q = question;
    size_t enough = q->job->each == NULL ? 1 : q->wanted.n_first;
    return q->wanted.n_found >= enough;
}

/* Read the filters of the months at hand, whose logs were read.  False: after a fault. */
static bool read_filters(struct question *q)
{
    struct seen_bits bits = {.partition = q->partition,
        .tag = q->tag,
        .site = q->job->site,
        .months = q->months,
        .filters = q->filters,
        .n_months = q->n_months,
        .cache = q->core->cache,
        .any = q->job->each == NULL};
    for (unsigned m = 0; m < q->n_months; m++) {
        q->of_page = bloom_either(q->of_page, seen_filter_false_positives(&q->filters[m]));
    }
    return is_decided(q) || seen_bits_find(&bits, &q->pipe, &q->wanted);
}

/* Look at all months that are kept.  False: after a fault of the pipeline. */
static bool read_all(struct question *q, const struct bloom_params *params)
{
    bool ok = read_newest_logs(q, params) && read_filters(q);
    /* Where the clock was set back, more months than these may be kept. */
    while (ok && !is_decided(q) &&
           turn_to(q, bucket_at(zone_utc(), LEVEL_MONTH, q->months[q->n_months - 1].start_s - 1))) {
        ok = read_logs(q, params) && read_filters(q);
    }
    return ok;
}

static void seen_tell(const struct question *q)
{
    q->job->seen = q->wanted.n_found > 0;
    for (size_t i = 0; q->job->each != NULL && i < q->job->n_pages; i++) {
        q->job->each[i] = wanted_found(&q->wanted, 2 * i) || wanted_found(&q->wanted, 2 * i + 1);
    }
}

/* A filter says yes by chance: for a name of a page, or for any of the names where one is
 * enough. */
static double false_positives(const struct question *q)
{
    double of_all = 0;
    size_t n = q->job->each == NULL ? q->wanted.n_first : q->has_others ? 2 : 1;
    for (size_t i = 0; i < n; i++) {
        of_all = bloom_either(of_all, q->of_page);
    }
    return of_all;
}

/* Look at what is counted. */
static enum storage_err look_in_redis(
    struct question *q, struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct bloom_params params =
        seen_params(&q->core->config.seen, visitor_partitions(q->core->partitions.n));
    enum storage_err err = waiting_await(&q->waiting, reader, job, ret_lost);
    int64_t since_us = session_stands_since(&reader->session);
    if (err != STORAGE_OK) {
        return err;
    }
    pipeline_init(&q->pipe, &reader->session, job->deadline_ms);
    pipeline_keep_order(&q->pipe);
    if (read_all(q, &params)) {
        seen_tell(q);
    }
    q->job->false_positives = false_positives(q);
    err = pipeline_answer(&q->pipe, job, ret_lost);
    if (err == STORAGE_OK && !settled_still(&reader->session, since_us)) {
        err = STORAGE_DOWN; /* a server may have gone back since, so the job runs once more */
    }
    return err;
}

/* Look at what waits to be counted.  False: out of memory. */
static bool look_at_waiting(struct question *q, size_t most)
{
    waiting_release(&q->waiting);
    waiting_take(&q->waiting, q->core, most);
    return waiting_find(&q->waiting, q->job->site, q->job->user, take_waiting, is_decided, q);
}

static enum storage_err seen_look(
    struct question *q, struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    enum storage_err err = page_set_resolve(
        reader, job, &q->job->set, q->job->site, &q->job->pages, &q->job->n_pages, ret_lost);
    err = err == STORAGE_OK ? seen_prepare(q) : err;
    if (err != STORAGE_OK) {
        return err;
    }
    if (!look_at_waiting(q, WAITING_NEWEST) ||
        (!is_decided(q) && !look_at_waiting(q, WAITING_ALL))) {
        return STORAGE_NOMEM;
    }
    if (!is_decided(q)) {
        return look_in_redis(q, reader, job, ret_lost);
    }
    seen_tell(q);
    q->job->false_positives = 0; /* the views themselves were found */
    return STORAGE_OK;
}

enum storage_err seen_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct question q = {.core = reader->core, .job = &job->u.seen};
    enum storage_err err = seen_look(&q, reader, job, ret_lost);
    wanted_release(&q.wanted);
    waiting_release(&q.waiting);
    return err;
}
