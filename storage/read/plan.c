#include "storage/read/plan.h"

#include "storage/time/units.h"

enum storage_err plan_error(enum cover_result result)
{
    switch (result) {
    case COVER_OK:
        return STORAGE_OK;
    case COVER_NOT_KEPT:
        return STORAGE_NOT_KEPT;
    case COVER_TOO_MANY:
        return STORAGE_TOO_BROAD;
    case COVER_NOMEM:
        break;
    }
    return STORAGE_NOMEM;
}

bool plan_lags(struct core *core)
{
    return core_rollup_lag_s(core, LEVEL_HOUR) > HOUR_S ||
           core_rollup_lag_s(core, LEVEL_DAY) > 2 * DAY_S;
}

enum storage_err plan_told(struct core *core, enum storage_err err)
{
    return err == STORAGE_TOO_BROAD && plan_lags(core) ? STORAGE_LAGGING : err;
}

struct cover_basis plan_basis(
    const struct zone *zone, const struct partition_view *view, int64_t now_s, int64_t latest_s)
{
    return (struct cover_basis){
        .zone = zone,
        .state = &view->state,
        .retention = &view->retention,
        .now_s = now_s,
        .empty_from_s = latest_s + STORAGE_FUTURE_MAX_S + HOUR_S,
    };
}
