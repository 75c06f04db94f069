/* probe.c - is Redis ready?  One write, of a key that expires after a minute, proves that a server
 * takes writes.  In a cluster every primary is asked.  A primary that takes no writes stops its own
 * partitions only, so the service as a whole is ready as long as any primary takes writes. */
#include "storage/read/operation.h"

#include <stdio.h>
#include <string.h>

#include "storage/base/buffer.h"
#include "storage/base/clock.h"
#include "storage/read/pipeline.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"
#include "storage/session/asks.h"
#include "storage/session/replicated.h"
#include "storage/session/reply_fault.h"

#define SERVER_MS   500 /* the longest wait for one of several servers */
#define REPLICAS_MS 300 /* the longest wait for the replicas of all servers */

/* Write to the server of @partition.  After a fault job->detail says what Redis answered. */
static enum storage_err probe_one(struct reader *reader, struct storage_job *job,
    unsigned partition, int64_t deadline_ms, bool *ret_lost)
{
    struct pipeline p;
    pipeline_init(&p, &reader->session, deadline_ms);
    struct buffer *out = pipeline_command(&p, partition, "SET", 4);
    key_put(out, reader->core->partitions.tag[partition], "probe");
    resp_text(out, "1");
    resp_text(out, "EX");
    resp_text(out, "60");
    (void)pipeline_ask(&p, false); /* no reader looks at the key, so a doubt does no harm */
    return pipeline_answer(&p, job, ret_lost);
}

/* The partitions whose states are looked at, in the order of the commands. */
struct state_look {
    struct core *core;
    uint16_t asked[PARTITIONS_MAX];
};

/* Append a line to what the probe says: what is wrong, and with which server ("": none). */
static void add_degraded(struct probe_job *probe, const char *name, const char *why)
{
    size_t n = strlen(probe->degraded);
    (void)snprintf(probe->degraded + n, sizeof(probe->degraded) - n, "%s%s%s%s", n == 0 ? "" : "\n",
        name, name[0] == '\0' ? "" : ": ", why);
}

/* Does the server of @partition, one of several, take writes?  If not, the probe says why, and
 * *first_err is the error unless an earlier server had one. */
static bool probe_server(
    struct reader *reader, struct storage_job *job, unsigned partition, enum storage_err *first_err)
{
    char name[ADDRESS_TEXT_SIZE];
    char why[sizeof(job->detail)];
    bool lost = false;
    int64_t until_ms = monotonic_ms() + SERVER_MS;
    enum storage_err err = STORAGE_DOWN;
    job->detail[0] = '\0';
    if (server_away_ms(reader->core, partition, why, sizeof(why)) == 0) {
        err = probe_one(reader, job, partition,
            until_ms < job->deadline_ms ? until_ms : job->deadline_ms, &lost);
    }
    if (err == STORAGE_OK) {
        return true;
    }
    *first_err = *first_err == STORAGE_OK ? err : *first_err;
    server_name(reader->core, partition, name, sizeof(name));
    add_degraded(&job->u.probe, name, job->detail[0] != '\0' ? job->detail : storage_err_text(err));
    return false;
}

/* Note which servers of @written, all of which take writes, have replicas that do not acknowledge.
 * Such a server's requests are refused, though questions go on. */
static void probe_replicas(
    struct reader *reader, struct storage_job *job, const struct part_set *written)
{
    unsigned n = reader->core->config.ack_replicas;
    struct part_set have;
    if (n == 0 || replicated_ask(reader->core, &reader->session, written, n, REPLICAS_MS,
                      job->deadline_ms, &have) != REDIS_OK_STATUS) {
        return; /* the next probe finds the server that could not be asked */
    }
    for (unsigned p = 0; p < reader->core->partitions.n; p++) {
        if (part_set_has(written, p) && !part_set_has(&have, p)) {
            char name[ADDRESS_TEXT_SIZE];
            server_name(reader->core, p, name, sizeof(name));
            add_degraded(&job->u.probe, name, "too few replicas acknowledge what is written");
        }
    }
}

static bool take_state(void *data, size_t i, const struct reply *reply)
{
    const struct state_look *look = data;
    if (reply->type == REPLY_INTEGER) {
        core_note_state(look->core, look->asked[i], reply->integer == 0);
    }
    return true;
}

/* Note which partitions have lost their states.  The probe looks at each partition whose state this
 * process has known: if no question or fold needs the partition, nothing else would notice.  False:
 * the connection must be closed. */
static bool probe_states(struct reader *reader, struct storage_job *job)
{
    struct state_look look = {.core = reader->core};
    struct asks asks = asks_to(&reader->session);
    char text[LOST_STATE_TEXT];
    for (unsigned p = 0; p < reader->core->partitions.n; p++) {
        char why[sizeof(job->detail)];
        bool is_known = core_view(reader->core, p).seen_ms != 0 ||
                        partition_marks_next(&reader->core->lost_states, p) == p;
        if (is_known && server_away_ms(reader->core, p, why, sizeof(why)) == 0) {
            look.asked[asks.n] = (uint16_t)p;
            resp_text(asks_command(&asks, reader->core, p, "HEXISTS", "state", 1), "cfg");
        }
    }
    int64_t until_ms = monotonic_ms() + SERVER_MS;
    bool ok =
        asks.n == 0 || asks_run(&asks, until_ms < job->deadline_ms ? until_ms : job->deadline_ms,
                           take_state, &look) == REDIS_OK_STATUS;
    if (core_lost_text(reader->core, text)) {
        add_degraded(&job->u.probe, "", text);
    }
    return ok;
}

static enum storage_err probe_all(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct part_set each;
    struct part_set written = {.words = {0}};
    enum storage_err err = STORAGE_OK;
    bool any = false;
    bool all = servers_each(reader->core, &each);
    for (unsigned p = 0; p < reader->core->partitions.n; p++) {
        if (part_set_has(&each, p) && probe_server(reader, job, p, &err)) {
            part_set_add(&written, p);
            any = true;
        }
    }
    probe_replicas(reader, job, &written);
    if (!all) {
        err = err == STORAGE_OK ? STORAGE_DOWN : err;
        add_degraded(&job->u.probe, "", "no server is known for some slots");
    }
    job->detail[0] = '\0';
    *ret_lost = !probe_states(reader, job);
    if (!any) {
        (void)snprintf(job->detail, sizeof(job->detail), "%.*s",
            (int)strcspn(job->u.probe.degraded, "\n"), job->u.probe.degraded);
    }
    return any ? STORAGE_OK : err;
}

enum storage_err probe_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    job->u.probe.degraded[0] = '\0';
    return reader->core->is_spread ? probe_all(reader, job, ret_lost)
                                   : probe_one(reader, job, 0, job->deadline_ms, ret_lost);
}
