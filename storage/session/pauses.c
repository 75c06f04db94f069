#include "storage/session/pauses.h"

#include <poll.h>

#include "storage/base/clock.h"

#define PAUSE_MIN_MS 20
#define PAUSE_MAX_MS 200

bool pauses_make(struct pauses *pauses, const struct redis_look *look, int64_t deadline_ms)
{
    pauses->redirects = 0;
    pauses->pause_ms = pauses->pause_ms == 0                 ? PAUSE_MIN_MS
                       : 2 * pauses->pause_ms > PAUSE_MAX_MS ? PAUSE_MAX_MS
                                                             : 2 * pauses->pause_ms;
    if (monotonic_ms() + pauses->pause_ms >= deadline_ms ||
        (look->look != NULL && !look->look(look->data))) {
        return false;
    }
    (void)poll(NULL, 0, pauses->pause_ms);
    return true;
}
