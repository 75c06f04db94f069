/* reader_tool.c - questions to a cluster that holds tallyd's data, for integration/
 * test_reading_cluster.py.
 *
 *     reader_tool URL PARTITIONS
 *
 * Nothing is settled first: the data is at rest.  Input, a line each; times are seconds since 1970:
 *
 *     count METRIC SITE FROM TO [PAGE]    METRIC: pv, uv, ips or visits
 *     pages SITE FROM TO
 *     sites
 *
 * Output, a line each: the figure; "PAGE=PV" for each page; the sites; or "failed: WHY".
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "storage/base/clock.h"
#include "storage/operations.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"

#define DEADLINE_MS 10000

static struct core core;
static struct reader reader;

static void fail(const char *why)
{
    (void)fprintf(stderr, "reader_tool: %s\n", why);
    exit(1);
}

/* The clock that all of the data goes by. */
static void see_time(void)
{
    const struct reply *reply = NULL;
    int64_t deadline_ms = monotonic_ms() + DEADLINE_MS;
    resp_command(dispatcher_begin(&reader.dispatcher, 0, DISPATCH_SINGLE), "TIME", NULL);
    if (!dispatcher_end(&reader.dispatcher, 1)) {
        fail("no memory");
    }
    dispatcher_send(&reader.dispatcher, deadline_ms);
    if (dispatcher_await(&reader.dispatcher, deadline_ms, &reply) != REDIS_OK_STATUS) {
        fail("no clock");
    }
    core_time_seen(&core, reply_time_us(reply));
}

/* The settings that the data has, and its data set with them. */
static void take_settings(void)
{
    const struct reply *reply;
    int64_t deadline_ms = monotonic_ms() + DEADLINE_MS;
    struct key state;
    struct buffer *out = dispatcher_begin(&reader.dispatcher, 0, DISPATCH_SINGLE);
    key_fixed(&state, core.partitions.tag[0], "state", SLICE(""));
    resp_head(out, 3);
    resp_text(out, "HGET");
    resp_word(out, state.p, state.n);
    resp_text(out, "cfg");
    if (!dispatcher_end(&reader.dispatcher, 1)) {
        fail("no memory");
    }
    dispatcher_send(&reader.dispatcher, deadline_ms);
    if (dispatcher_await(&reader.dispatcher, deadline_ms, &reply) != REDIS_OK_STATUS ||
        reply->type != REPLY_TEXT) {
        fail("no data");
    }
    (void)snprintf(core.cfg, sizeof(core.cfg), "%s", reply->text.p);
}

static void begin(const char *url, const char *partitions)
{
    const char *error;
    core_init(&core);
    partitions_make((unsigned)strtoul(partitions, NULL, 10), &core.partitions);
    core.config.retention =
        (struct retention){.keep_s = {2 * 86400, 62 * 86400, 1100 * INT64_C(86400), KEEP_FOREVER}};
    if (!servers_start(&core, url, &error) || !site_zones_init(&core.sites)) {
        fail("no such cluster");
    }
    reader.core = &core;
    dispatcher_init(&reader.dispatcher, &core, &(struct redis_look){.silence_ms = 3000});
    reader.session.dispatcher = &reader.dispatcher;
    see_time();
    take_settings();
}

/* As storage/readers.c: a lost connection is tried again. */
static enum storage_err run(struct storage_job *job)
{
    enum storage_err err = STORAGE_OK;
    bool lost = true;
    job->deadline_ms = monotonic_ms() + DEADLINE_MS;
    while (lost && monotonic_ms() < job->deadline_ms) {
        lost = false;
        err = storage_operations[job->op].run(&reader, job, &lost);
    }
    return err;
}

static struct window window_of(char **rest)
{
    int64_t from_s = strtoll(strtok_r(NULL, " ", rest), NULL, 10);
    return (struct window){from_s, strtoll(strtok_r(NULL, " ", rest), NULL, 10)};
}

static enum storage_err count(struct storage_job *job, char **rest)
{
    static const char *const names[METRICS] = {"pv", "uv", "ips", "visits", "engaged", "seconds",
        "other_pv", "other_uv", "other_ips", "other_visits"};
    const char *name = strtok_r(NULL, " ", rest);
    struct slice page;
    *job = (struct storage_job){.op = STORAGE_COUNT};
    struct count_job *c = &job->u.count;
    while (strcmp(names[c->metric], name) != 0) {
        c->metric++;
    }
    c->asked.site = slice_of(strtok_r(NULL, " ", rest));
    c->asked.window = window_of(rest);
    c->asked.round_outer = true;
    c->zone = zone_utc();
    const char *text = strtok_r(NULL, " ", rest);
    if (text != NULL) {
        page = slice_of(text);
        c->pages = &page;
        c->n_pages = 1;
    }
    enum storage_err err = run(job);
    if (err == STORAGE_OK) {
        printf("%llu\n", (unsigned long long)c->values[c->metric]);
    }
    return err;
}

static enum storage_err pages(struct storage_job *job, char **rest)
{
    *job = (struct storage_job){.op = STORAGE_PAGES};
    struct pages_job *p = &job->u.pages;
    p->asked.site = slice_of(strtok_r(NULL, " ", rest));
    p->asked.window = window_of(rest);
    p->asked.round_outer = true;
    p->limit = PAGES_LIMIT_MAX;
    enum storage_err err = run(job);
    for (size_t i = 0; err == STORAGE_OK && i < p->n_rows; i++) {
        printf("%s%.*s=%llu", i == 0 ? "" : " ", (int)p->rows[i].page.n, p->rows[i].page.p,
            (unsigned long long)p->rows[i].pv);
    }
    printf("%s", err == STORAGE_OK ? "\n" : "");
    return err;
}

static enum storage_err sites(struct storage_job *job)
{
    *job = (struct storage_job){.op = STORAGE_SITES};
    enum storage_err err = run(job);
    for (size_t i = 0; err == STORAGE_OK && i < job->u.sites.n_sites; i++) {
        const struct slice *site = &job->u.sites.sites[i];
        printf("%s%.*s", i == 0 ? "" : " ", (int)site->n, site->p);
    }
    printf("%s", err == STORAGE_OK ? "\n" : "");
    return err;
}

int main(int argc, char **argv)
{
    static char line[4096];
    (void)signal(SIGPIPE, SIG_IGN);
    if (argc != 3) {
        return 2;
    }
    begin(argv[1], argv[2]);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        static struct storage_job job;
        char *rest = NULL;
        line[strcspn(line, "\n")] = '\0';
        const char *what = strtok_r(line, " ", &rest);
        enum storage_err err = strcmp(what, "count") == 0   ? count(&job, &rest)
                               : strcmp(what, "pages") == 0 ? pages(&job, &rest)
                                                            : sites(&job);
        if (err != STORAGE_OK) {
            printf("failed: %s: %s\n", storage_err_text(err), job.detail);
        }
        (void)fflush(stdout);
        storage_job_release(&job);
    }
    reader_release(&reader);
    servers_stop(&core);
    core_release(&core);
    return 0;
}
