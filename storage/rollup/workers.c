#include "storage/rollup/workers.h"

#include <stdlib.h>

#include "storage/base/clock.h"
#include "storage/session/server.h"
#include "storage/session/sessions.h"

#define WORKERS_MAX 16
#define CONNECT_MS  2000

struct worker {
    struct rollup_workers *all;
    unsigned number;
    struct sessions sessions; /* during a run they belong to the worker's thread */
    pthread_t thread;
    bool is_running;
    bool ok; /* nothing is left in the worker's partitions */
};

struct rollup_workers {
    struct core *core;
    unsigned n; /* workers in this run */
    uint16_t server_of[PARTITIONS_MAX];
    rollup_work_fn *work;
    void *data;
    struct worker workers[WORKERS_MAX];
};

struct rollup_workers *rollup_workers_new(struct core *core)
{
    struct rollup_workers *all = calloc(1, sizeof(*all));
    if (all == NULL) {
        return NULL;
    }
    all->core = core;
    for (unsigned i = 0; i < WORKERS_MAX; i++) {
        struct worker *w = &all->workers[i];
        w->all = all;
        w->number = i;
        sessions_init(&w->sessions, core, (struct redis_look){core_runs, core, 0});
    }
    return all;
}

void rollup_workers_free(struct rollup_workers *all)
{
    for (unsigned i = 0; all != NULL && i < WORKERS_MAX; i++) {
        sessions_release(&all->workers[i].sessions);
    }
    free(all);
}

/* A worker's thread.  A server that was not reached is not tried again for each of its partitions.
 */
static void *work_main(void *argument)
{
    struct worker *w = argument;
    struct rollup_workers *all = w->all;
    struct part_set away = {.words = {0}}; /* numbers of servers */
    for (unsigned p = 0; p < all->core->partitions.n; p++) {
        unsigned server = all->server_of[p];
        if (server == SERVER_NOBODY || server % all->n != w->number ||
            part_set_has(&away, server)) {
            continue;
        }
        struct session *session = sessions_get(&w->sessions, p, monotonic_ms() + CONNECT_MS);
        if (session == NULL) {
            part_set_add(&away, server);
            w->ok = false;
            continue;
        }
        w->ok = all->work(all->data, p, session) && w->ok;
    }
    return NULL;
}

bool rollup_workers_run(struct rollup_workers *all, rollup_work_fn *work, void *data)
{
    unsigned n_servers = servers_number(all->core, all->server_of);
    bool ok = true;
    for (unsigned p = 0; p < all->core->partitions.n; p++) {
        ok = ok && all->server_of[p] != SERVER_NOBODY;
    }
    all->n = n_servers < WORKERS_MAX ? n_servers : WORKERS_MAX;
    all->work = work;
    all->data = data;
    for (unsigned i = 0; i < all->n; i++) {
        struct worker *w = &all->workers[i];
        w->ok = true;
        w->is_running = pthread_create(&w->thread, NULL, work_main, w) == 0;
        if (!w->is_running) {
            (void)work_main(w);
        }
    }
    for (unsigned i = 0; i < all->n; i++) {
        struct worker *w = &all->workers[i];
        if (w->is_running) {
            pthread_join(w->thread, NULL);
        }
        ok = ok && w->ok;
    }
    return ok;
}
