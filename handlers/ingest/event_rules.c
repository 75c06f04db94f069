#include "handlers/ingest/event_rules.h"

enum drop_reason event_drop_reason(const struct event_rules *rules, const struct event *event)
{
    if (rules->robots != NULL && robots_cache_known(rules->robots, event->agent)) {
        return DROP_ROBOT;
    }
    return networks_hold(rules->ignored, rules->n_ignored, &event->address) ? DROP_IGNORED
                                                                            : DROP_NOT;
}

const char *drop_reason_name(enum drop_reason reason)
{
    switch (reason) {
#define X(value, name)                                                                             \
    case value:                                                                                    \
        return name;
        DROP_REASONS(X)
#undef X
    case DROP_NOT:
        break;
    }
    return "";
}
