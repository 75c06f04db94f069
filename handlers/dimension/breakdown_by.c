#include "handlers/dimension/breakdown_by.h"

#include "handlers/dimension/derive.h"
#include "handlers/text/check.h"

/* Is @prop one of the properties that the site declares? */
static bool is_declared(const struct dimension_plan *plan, struct slice prop)
{
    for (size_t i = 0; i < plan->n_props; i++) {
        if (slice_equal(plan->props[i], prop)) {
            return true;
        }
    }
    return false;
}

bool breakdown_by_read(
    const struct app *app, struct slice site, struct slice by, struct breakdown_by *ret)
{
    static const struct slice head = {"prop:", 5};
    struct slice prop = SLICE("");
    enum dimension dimension = dimension_find(by);
    bool is_event = slice_equal(by, SLICE("event"));
    if (is_event || slice_equal(by, SLICE("section"))) {
        ret->text[0] = is_event ? NAME_MARK_EVENT : NAME_MARK_SECTION;
        ret->n = 1;
        ret->counted = ret->with_uv = true;
        return true;
    }
    if (slice_begins(by, head)) {
        prop = (struct slice){by.p + head.n, by.n - head.n};
        dimension = name_valid(prop) ? DIMENSION_PROP : DIMENSION_N;
    }
    if (dimension == DIMENSION_N) {
        return false;
    }
    ret->n = value_class(dimension, prop, ret->text).n;
    const struct dimension_plan *plan = derive_plan(app, site);
    ret->counted = dimension == DIMENSION_PROP ? is_declared(plan, prop)
                                               : (plan->counted >> dimension & 1) != 0;
    ret->with_uv = (plan->with_visitors >> dimension & 1) != 0;
    return true;
}
