#include "storage/log/heartbeat.h"

#define BEAT_MS  5000
#define PROOF_MS 250 /* while entries are held that are not safe, or somebody wants to know */

int64_t heartbeat_due_ms(struct appender *a)
{
    int64_t wanted_ms = standing_wanted_ms(append_standing(a));
    bool is_wanted = wanted_ms != INT64_MIN;
    bool holds =
        a->first != NULL && (atomic_load(&a->core->go_back_ms) > 0 || a->core->hold_ms > 0);
    int64_t due_ms = a->beat_ms + (is_wanted || holds ? PROOF_MS : BEAT_MS);
    return is_wanted && wanted_ms > a->beat_ms && wanted_ms < due_ms ? wanted_ms : due_ms;
}
