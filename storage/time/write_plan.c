#include "storage/time/write_plan.h"

void write_plan_init(
    struct write_plan *plan, const struct retention *retention, const struct rollup_state *state)
{
    *plan = (struct write_plan){
        .zone = zone_utc(), .retention = retention, .state = *state, .minute_s = INT64_MIN};
}

void write_plan_in(struct write_plan *plan, const struct zone *zone)
{
    if (plan->zone != zone) {
        plan->zone = zone;
        plan->minute_s = INT64_MIN;
    }
}

int64_t expiry_ms(int64_t end_s, int64_t keep_s)
{
    if (keep_s >= INT64_MAX / 2000 || end_s >= INT64_MAX / 2000) {
        return 0;
    }
    return (end_s + keep_s) * 1000;
}

static struct write_target target_of(const struct write_plan *plan, struct bucket bucket)
{
    struct write_target t = {.bucket = bucket};
    enum level up = bucket.level == LEVEL_MONTH ? LEVEL_MONTH : (enum level)(bucket.level + 1);
    t.parent = bucket_at(plan->zone, up, bucket.start_s);
    if (closed_for_readers(&plan->state, t.parent)) {
        t.expire_ms = expiry_ms(bucket.end_s, retention_keep_s(plan->retention, bucket));
    } else {
        t.announce = true; /* also a month that is closed for writers only: its own parent */
    }
    return t;
}

void write_plan_at(struct write_plan *plan, int64_t at_s)
{
    struct bucket minute = bucket_at(plan->zone, LEVEL_MINUTE, at_s);
    if (minute.start_s == plan->minute_s) {
        return;
    }
    plan->minute_s = minute.start_s;
    plan->targets[0] = target_of(plan, minute);
    plan->n = 1;
    for (int level = LEVEL_HOUR; level < LEVELS; level++) {
        struct bucket bucket = bucket_at(plan->zone, (enum level)level, at_s);
        if (!closed_for_writers(&plan->state, bucket)) {
            break; /* a coarser bucket cannot be closed either */
        }
        plan->targets[plan->n++] = target_of(plan, bucket);
    }
}
