#include "storage/write/delivery_answer.h"

#include "storage/base/clock.h"

/* Of a part that is answered OK: was the job's share of it applied? */
static enum storage_err share(const struct part *part, const struct storage_job *job)
{
    const struct claim *claim = job->u.write.claim;
    if (claim == NULL) {
        return STORAGE_OK;
    }
    switch (part_units_mark(part->units, part->n_units, claim->unit)) {
    case UNIT_OPEN:
    case UNIT_KNOWN:
    case UNIT_DIRECT:
        return STORAGE_OK;
    case UNIT_BEHIND:
        return STORAGE_REFUSED;
    case UNIT_OTHER:
    case UNIT_LATE:
    case UNIT_GONE:
        break;
    }
    return STORAGE_UNKNOWN; /* another attempt may have applied it */
}

/* What became of the parts that a job's events are in. */
static enum storage_err verdict(const struct flush *flush, const struct storage_job *job)
{
    bool applied = false;
    bool nothing = false;
    for (size_t i = 0; i < flush->n_parts; i++) {
        const struct part *part = &flush->parts[i];
        if ((job->parts_all >> part->partition & 1) == 0) {
            continue;
        }
        bool held = part->state == PART_HELD && !part->in_doubt;
        bool refused = part->state == PART_OVER && part->fate != FATE_UNKNOWN;
        enum storage_err mine = part->state == PART_OK ? share(part, job) : STORAGE_OK;
        if (mine == STORAGE_UNKNOWN) {
            return STORAGE_UNKNOWN;
        }
        if (held || refused || mine == STORAGE_REFUSED) {
            nothing = true;
        } else {
            applied = true; /* or may be */
        }
        if (!held && !refused && part->state != PART_OK) {
            return STORAGE_UNKNOWN;
        }
    }
    return !nothing ? STORAGE_OK : applied ? STORAGE_UNKNOWN : STORAGE_REFUSED;
}

static enum storage_err refusal(const struct core *core, const struct flush *flush)
{
    if (atomic_load(&core->settings_differ)) {
        return STORAGE_CONFIG;
    }
    for (size_t i = 0; i < flush->n_parts; i++) {
        if (flush->parts[i].fate != FATE_NONE) {
            return flush->parts[i].fate == FATE_OOM ? STORAGE_OOM : STORAGE_REFUSED;
        }
    }
    return STORAGE_LATE;
}

static void answer_job(const struct core *core, const struct flush *flush, struct storage_job *job)
{
    enum storage_err err = verdict(flush, job);
    job_done(job, err == STORAGE_REFUSED ? refusal(core, flush) : err);
}

void flush_answer(struct core *core, struct flush *flush)
{
    struct storage_stats *stats = &core->stats;
    struct storage_job *next;
    bool ok = true;
    for (size_t i = 0; i < flush->n_parts; i++) {
        ok = ok && flush->parts[i].state == PART_OK;
    }
    if (ok) {
        atomic_fetch_add(&stats->flushes, 1);
        atomic_fetch_add(&stats->flush_events, (int64_t)flush->n_rows);
        atomic_fetch_add(&stats->flush_parts, (int64_t)flush->n_parts);
        atomic_fetch_add(&stats->flush_us, monotonic_us() - flush->sent_us);
    }
    for (struct storage_job *job = flush->jobs; job != NULL; job = next) {
        next = job->next;
        answer_job(core, flush, job);
    }
    flush_free(flush);
}

/* Was nothing of it applied, and is nothing under way that may be? */
static bool is_untouched(const struct flush *flush)
{
    for (size_t i = 0; i < flush->n_parts; i++) {
        const struct part *part = &flush->parts[i];
        bool held = part->state == PART_HELD && !part->in_doubt;
        bool refused = part->state == PART_OVER && part->fate != FATE_UNKNOWN;
        if (!held && !refused) {
            return false;
        }
    }
    return true;
}

bool flush_is_finished(const struct flush *flush)
{
    for (size_t i = 0; i < flush->n_parts; i++) {
        if (flush->parts[i].state == PART_SENT || flush->parts[i].state == PART_HELD) {
            return flush->jobs == NULL && is_untouched(flush) && !flush->bounced;
        }
    }
    return true;
}

/* 503 promises that nothing was and will be applied: only if the whole flush is given up with this,
 * which it is (is_finished) once its last job is answered. */
void flush_answer_late(struct core *core, struct flush *flush, int64_t now_ms)
{
    bool all_late = true;
    for (const struct storage_job *job = flush->jobs; job != NULL; job = job->next) {
        all_late = all_late && job->deadline_ms <= now_ms;
    }
    bool given_up = all_late && is_untouched(flush);
    struct storage_job **at = &flush->jobs;
    while (*at != NULL) {
        struct storage_job *job = *at;
        if (job->deadline_ms > now_ms) {
            at = &job->next;
            continue;
        }
        *at = job->next;
        if (given_up) {
            answer_job(core, flush, job);
        } else {
            job_done(job, STORAGE_UNKNOWN);
        }
    }
}
