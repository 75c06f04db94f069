#include "storage/write/delivery_direct.h"

/* It takes the other way: see claim.h. */
static void bounce(struct flush *flush, uint32_t unit, bool in_doubt)
{
    struct storage_job *job = flush_take_direct(flush, unit);
    if (job != NULL) {
        job->u.write.claim->outcome = CLAIM_FIRST;
        job->u.write.claim->in_doubt = in_doubt;
        job_done(job, STORAGE_OK);
    }
}

void direct_bounce_all(struct flush *flush, bool in_doubt)
{
    for (uint32_t unit = 1; flush->n_direct > 0 && unit <= flush->n_units; unit++) {
        if (flush->units[unit - 1].direct) {
            bounce(flush, unit, in_doubt);
        }
    }
}

bool flush_was_sent(const struct flush *flush)
{
    for (size_t i = 0; i < flush->n_parts; i++) {
        if (flush->parts[i].state != PART_HELD || flush->parts[i].in_doubt) {
            return true;
        }
    }
    return false;
}

bool direct_fits(const struct core *core, const struct pace *pace, const struct flush *flush)
{
    uint64_t us = 0;
    uint64_t seen = 0;
    for (size_t i = 0; i < flush->n_parts; i++) {
        uint64_t bit = (uint64_t)1 << flush->parts[i].partition;
        us += flush->parts[i].us;
        if ((seen & bit) != 0) {
            return false;
        }
        seen |= bit;
    }
    return core->one_node && us <= pace_limit_us(pace);
}

bool direct_take_used(struct flush *flush, struct slice text)
{
    flush->bounced = flush->bounced || text.n > 0;
    while (text.n > 0 && flush->n_direct > 0) { /* none: all were bounced for another reason */
        int64_t nth = 0;
        for (; text.n > 0 && text.p[0] >= '0' && text.p[0] <= '9' && nth < 1000000; text.n--) {
            nth = nth * 10 + (*text.p++ - '0');
        }
        uint32_t unit = 0;
        for (int64_t left = nth; left > 0 && unit < flush->n_units; unit++) {
            left -= flush->units[unit].direct ? 1 : 0;
        }
        if (unit == 0 || !flush->units[unit - 1].direct || (text.n > 0 && text.p[0] != ' ')) {
            return false;
        }
        bounce(flush, unit, false);
        text.p += text.n > 0 ? 1 : 0;
        text.n -= text.n > 0 ? 1 : 0;
    }
    return true;
}
