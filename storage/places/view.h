/* view.h - what places know of a partition: which hours are closed.
 *
 * Layer: storage, pure: plain values.
 */
#ifndef STORAGE_PLACES_VIEW_H
#define STORAGE_PLACES_VIEW_H

#include "storage/time/closed.h"

struct places_view {
    bool known; /* false: no hour is closed, as far as is known */
    struct rollup_state state;
    struct retention retention;
    int64_t now_ms;      /* Redis's clock */
    bool reads_counters; /* of closed hours, before anything is decided: see places.h */
};

#endif
