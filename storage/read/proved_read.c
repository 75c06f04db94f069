#include "storage/read/proved_read.h"

#include <stdlib.h>

#include "storage/base/clock.h"
#include "storage/read/plan.h"
#include "storage/read/proved_state.h"
#include "storage/session/dispatcher.h"

#define RECALLS 2 /* attempts that recall; where late events come faster, everything is read */

/* ---- a question ---- */

static bool reserve_partitions(struct proved_read *r)
{
    size_t n = r->core->partitions.n;
    if (r->known == NULL) {
        r->known = calloc(n, sizeof(*r->known));
    }
    if (r->covers == NULL) {
        r->covers = calloc(n, sizeof(*r->covers));
        for (size_t i = 0; r->covers != NULL && i < n; i++) {
            cover_init(&r->covers[i]);
        }
    }
    return r->known != NULL && r->covers != NULL;
}

bool proved_begin(struct proved_read *r, struct reader *reader, struct storage_job *job,
    struct window_question *asked, bool *ret_lost)
{
    r->core = reader->core;
    r->session = &reader->session;
    r->job = job;
    r->asked = asked;
    r->ret_lost = ret_lost;
    r->zone = site_zones_get(&reader->core->sites, asked->site);
    r->window = asked->window;
    r->stale = r->forgetful = r->full = r->careful = false;
    r->page_bytes = 0;
    return reserve_partitions(r);
}

void proved_end(struct proved_read *r)
{
    proved_drain(r);
}

void proved_release(struct proved_read *r)
{
    free(r->pieces);
    for (size_t i = 0; r->covers != NULL && i < r->core->partitions.n; i++) {
        cover_release(&r->covers[i]);
    }
    free(r->covers);
    free(r->known);
    buffer_release(&r->out);
    buffer_release(&r->keys);
    buffer_release(&r->args);
}

/* The end of the minute in which the attempt's first reply was given, by Redis's clock. */
static int64_t minute_end_s(const struct proved_read *r)
{
    return bucket_at(zone_utc(), LEVEL_MINUTE, r->first_s).end_s;
}

/* Does the question's window end now, though a later minute has begun by Redis's clock? */
static bool is_behind(const struct proved_read *r)
{
    return r->asked->to_is_now && minute_end_s(r) > r->window.to_s;
}

bool proved_holds(const struct proved_read *r)
{
    return !r->stale && !is_behind(r);
}

enum storage_err proved_attempts(struct proved_read *r, proved_attempt_fn *attempt, void *data)
{
    for (unsigned tries = 0; monotonic_ms() < r->job->deadline_ms; tries++) {
        bool was_careful = r->careful;
        r->begun_ms = monotonic_ms();
        proved_drain(r);
        r->stale = r->scans = r->has_time = false;
        r->changes = r->session->dispatcher != NULL ? r->session->dispatcher->links.changes : 0;
        r->forgetful = tries >= RECALLS;
        r->now_s = redis_clock_ms(&r->core->clock) / 1000;
        r->latest_s = core_latest_s(r->core, r->now_s);
        /* One of several servers has the clock, and settling the question has read that clock. */
        r->first_s = r->core->is_spread ? r->now_s : 0;
        enum storage_err err = attempt(data);
        if (err != STORAGE_OK || proved_holds(r)) {
            return err;
        }
        tries -=
            r->careful && !was_careful; /* a plain piece learns no state: the next attempt does */
        r->window.to_s = is_behind(r) ? minute_end_s(r) : r->window.to_s;
        atomic_fetch_add(&r->core->stats.query_replans, 1);
    }
    return STORAGE_LATE; /* rollups moved on faster than the attempts could read */
}

/* ---- planning ---- */

const struct partition_view *proved_view(struct proved_read *r, unsigned partition)
{
    struct proved_partition *known = &r->known[partition];
    known->view = core_view(r->core, partition);
    known->seen = false;
    known->unproved = known->changed = 0;
    return &known->view;
}

struct cover_basis proved_basis(const struct proved_read *r, const struct partition_view *view)
{
    return plan_basis(r->zone, view, r->now_s, r->latest_s);
}

/* ---- remembering ---- */

bool proved_may_recall(const struct proved_read *r, unsigned partition)
{
    return r->core->cache != NULL && !r->full && !r->forgetful && r->known[partition].view.known;
}

uint64_t proved_by(const struct proved_read *r, unsigned partition, enum proof proof)
{
    const struct partition_view *view = &r->known[partition].view;
    return proof_is_steady(view, proof, r->begun_ms) ? ver_hash(proof_ver(view, proof)) : 0;
}

void proved_rely(struct proved_read *r, unsigned partition, enum proof proof)
{
    struct proved_partition *known = &r->known[partition];
    if (!known->seen) {
        known->unproved |= 1u << proof;
    }
}

bool proved_recall(struct proved_read *r, unsigned partition, const struct remembered_run *run,
    const struct cache_id *id, void (*use)(void *data, const void *value, size_t n), void *data)
{
    const struct partition_view *view = &r->known[partition].view;
    bool found = proof_is_steady(view, run->proof, r->begun_ms) &&
                 cache_get(r->core->cache, id, proof_ver(view, run->proof), use, data);
    if (found) {
        proved_rely(r, partition, run->proof);
    }
    atomic_fetch_add(found ? &r->core->stats.cache_hits : &r->core->stats.cache_misses, 1);
    return found;
}

bool proved_may_keep(const struct proved_read *r, unsigned partition, const struct cover *cover,
    const struct remembered_run *run)
{
    const struct proved_partition *known = &r->known[partition];
    return (known->changed >> run->proof & 1) == 0 && run_holds(run, r->zone, &known->view, cover);
}

void proved_keep(struct proved_read *r, unsigned partition, const struct cover *cover,
    const struct remembered_run *run, const struct cache_id *id, const void *value, size_t n)
{
    if (proved_may_keep(r, partition, cover, run)) {
        const struct ver *ver = proof_ver(&r->known[partition].view, run->proof);
        cache_put(r->core->cache, id, ver, value, n);
    }
}
