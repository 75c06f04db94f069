#include "storage/hot/fleet.h"

#include <stdlib.h>

#include "storage/base/arena.h"
#include "storage/base/clock.h"
#include "storage/base/random_id.h"
#include "storage/hot/hot_pages.h"
#include "storage/hot/published.h"
#include "storage/read/operation.h"
#include "storage/read/pipeline.h"
#include "storage/redis/ask.h"
#include "storage/redis/resp.h"
#include "storage/schema/key.h"
#include "storage/session/session.h"

#define PUBLISH_MS 2000
#define LOOK_MS    100   /* while the data is not prepared: how often to look */
#define LIST_MS    4000  /* how long a list is good */
#define ALIVE_MS   10000 /* how long a silent process counts as alive */
#define ASK_MS     1000
#define FLEET_MAX  128 /* processes whose lists are added up */

struct hot_fleet {
    struct core *core;
    struct hot_pages *hot;
    pthread_t thread;
    struct wake wake;
    struct session session;
    struct buffer out, list;
    bool is_alone;
};

/* The key of the list of @process. */
static struct slice list_key(struct key *key, const struct core *core, const char *process)
{
    return key_fixed(key, core->partitions.tag[0], "hot:", slice_of(process));
}

/* ---- publishing ---- */

enum { REPLY_OF_TIME, REPLY_OF_OTHERS, REPLIES_KEPT };

/* Take a reply.  A command that Redis refuses is tried again with the next turn. */
static bool take_reply(void *data, size_t i, const struct reply *reply)
{
    struct hot_fleet *fleet = data;
    if (reply->type == REPLY_ERROR) {
        server_refused(fleet->core, &fleet->session.server, 0, reply);
    } else if (i == REPLY_OF_TIME) {
        core_time_seen(fleet->core, reply_time_us(reply));
    } else if (i == REPLY_OF_OTHERS) {
        fleet->is_alone = reply_integer(reply, 0) <= 1;
    }
    return true;
}

/* Say that this process lives, and learn whether others do. */
static size_t put_presence(struct hot_fleet *fleet)
{
    struct buffer *out = &fleet->out;
    const char *tag = fleet->core->partitions.tag[0];
    int64_t now_ms = redis_clock_ms(&fleet->core->clock);
    resp_command(out, "TIME", NULL);
    key_command(out, "ZCARD", tag, "hot", 0);
    key_command(out, "ZADD", tag, "hot", 2);
    resp_decimal(out, now_ms);
    resp_text(out, fleet->core->process);
    key_command(out, "ZREMRANGEBYSCORE", tag, "hot", 2);
    resp_text(out, "-inf");
    resp_decimal(out, now_ms - ALIVE_MS);
    key_command(out, "ZREMRANGEBYRANK", tag, "hot", 2);
    resp_text(out, "0");
    resp_decimal(out, -FLEET_MAX - 1);
    key_command(out, "PEXPIRE", tag, "hot", 1);
    resp_decimal(out, ALIVE_MS);
    return REPLIES_KEPT + 4;
}

/* Append the command that writes the list, unless the list is empty or no other process reads it.
 * Returns the number of commands. */
static size_t put_list(struct hot_fleet *fleet)
{
    struct hot_page *pages = NULL;
    size_t n = 0;
    double absent = 0;
    if (fleet->is_alone ||
        !hot_pages_list(fleet->hot, monotonic_ms(), PUBLISHED_PAGES, &pages, &n, &absent)) {
        return 0;
    }
    if (n > 0) {
        struct buffer *out = &fleet->out;
        buffer_clear(&fleet->list, PUBLISHED_BYTES);
        published_write(&fleet->list, pages, n, absent);
        struct key key;
        resp_begin(out, "SET", list_key(&key, fleet->core, fleet->core->process), 3);
        resp_word(out, fleet->list.p, fleet->list.n);
        resp_text(out, "PX");
        resp_decimal(out, LIST_MS);
        out->failed = out->failed || fleet->list.failed;
    }
    hot_pages_release(pages, n);
    return n > 0;
}

static void fleet_publish(struct hot_fleet *fleet)
{
    if (!session_reach(&fleet->session, fleet->core, monotonic_ms() + ASK_MS)) {
        return;
    }
    size_t n = put_presence(fleet);
    n += put_list(fleet);
    if (redis_ask_all(fleet->session.redis, &fleet->out, n, monotonic_ms() + ASK_MS, take_reply,
            fleet) != REDIS_OK_STATUS) {
        session_lost(&fleet->session);
    }
}

static void *fleet_main(void *argument)
{
    struct hot_fleet *fleet = argument;
    while (!atomic_load(&fleet->core->stopping)) {
        bool ready = atomic_load(&fleet->core->ready);
        int64_t next_ms = monotonic_ms() + (ready ? PUBLISH_MS : LOOK_MS);
        bool alone = fleet->is_alone;
        if (ready) {
            fleet_publish(fleet);
        }
        if (alone == fleet->is_alone) { /* another process that has come needs the list at once */
            wake_sleep(&fleet->wake, next_ms);
        }
    }
    session_close(&fleet->session);
    return NULL;
}

static void fleet_free(struct hot_fleet *fleet)
{
    buffer_release(&fleet->out);
    buffer_release(&fleet->list);
    wake_release(&fleet->wake);
    free(fleet);
}

struct hot_fleet *hot_fleet_start(struct core *core, struct hot_pages *hot)
{
    struct hot_fleet *fleet = calloc(1, sizeof(*fleet));
    if (fleet == NULL) {
        return NULL;
    }
    random_id(core->process, sizeof(core->process));
    fleet->core = core;
    fleet->hot = hot;
    fleet->is_alone = true;
    fleet->session.look = (struct redis_look){core_runs, core, 0};
    wake_init(&fleet->wake);
    if (pthread_create(&fleet->thread, NULL, fleet_main, fleet) != 0) {
        fleet_free(fleet);
        return NULL;
    }
    return fleet;
}

void hot_fleet_stop(struct hot_fleet *fleet)
{
    wake_up(&fleet->wake); /* core->stopping is set */
    pthread_join(fleet->thread, NULL);
    fleet_free(fleet);
}

/* ---- the question ---- */

/* The lists of the others, while they are gathered. */
struct gathering {
    struct core *core;
    struct pipeline pipe;
    struct arena arena; /* has their bytes */
    struct published_lists lists;
    struct {
        char id[sizeof(((struct core *)NULL)->process)];
    } others[FLEET_MAX];
    size_t n;
};

/* Ask which other processes there are. */
static bool ask_others(struct gathering *g)
{
    struct buffer *out = pipeline_command(&g->pipe, 0, "ZREVRANGEBYSCORE", 6);
    key_put(out, g->core->partitions.tag[0], "hot");
    resp_text(out, "+inf");
    resp_decimal(out, redis_clock_ms(&g->core->clock) - ALIVE_MS);
    resp_text(out, "LIMIT");
    resp_text(out, "0");
    resp_decimal(out, FLEET_MAX);
    const struct reply *reply = pipeline_ask(&g->pipe, false);
    for (size_t i = 0; reply != NULL && i < reply->n && g->n < FLEET_MAX; i++) {
        struct slice id = reply->items[i].text;
        if (id.n == sizeof(g->others->id) - 1 && !slice_equal(id, slice_of(g->core->process))) {
            memcpy(g->others[g->n].id, id.p, id.n);
            g->others[g->n++].id[id.n] = '\0';
        }
    }
    return reply != NULL;
}

static bool ask_lists(struct gathering *g)
{
    for (size_t i = 0; i < g->n; i++) {
        struct key key;
        struct buffer *out = pipeline_command(&g->pipe, 0, "GET", 1);
        resp_slice(out, list_key(&key, g->core, g->others[i].id));
    }
    bool ok = pipeline_send(&g->pipe, false);
    for (size_t i = 0; ok && i < g->n; i++) {
        const struct reply *reply = pipeline_take(&g->pipe);
        ok = reply != NULL;
        if (!ok || reply->type != REPLY_TEXT || reply->text.n == 0) {
            continue; /* the process has no list, or has ended */
        }
        struct slice copy = reply->text;
        if (!arena_copy(&g->arena, &copy) || !published_add_bytes(&g->lists, copy)) {
            return pipeline_fail(&g->pipe, STORAGE_NOMEM);
        }
    }
    return ok;
}

/* Turn the list of this process, which is the answer so far, into that of all processes. */
static bool fleet_merge(struct gathering *g, struct hot_pages_job *job)
{
    struct hot_page *all = NULL;
    size_t n = 0;
    if (!published_add(&g->lists, job->pages, job->n, job->absent) ||
        !published_merge(&g->lists, &all, &n)) {
        return pipeline_fail(&g->pipe, STORAGE_NOMEM);
    }
    hot_pages_release(job->pages, job->n);
    job->pages = all;
    job->n = n;
    return true;
}

enum storage_err hot_pages_run(struct reader *reader, struct storage_job *job, bool *ret_lost)
{
    struct gathering g = {.core = reader->core};
    pipeline_init(&g.pipe, &reader->session, job->deadline_ms);
    if (ask_others(&g) && ask_lists(&g)) {
        (void)fleet_merge(&g, &job->u.hot);
    }
    published_release(&g.lists);
    arena_release(&g.arena);
    return pipeline_answer(&g.pipe, job, ret_lost);
}
