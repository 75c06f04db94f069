/* together.h - which names of a day or a month keep an entry of their own, and which are put
 * together.
 *
 * Layer: storage, pure.  Belongs to the thread that does the pass.
 *
 * An hour has as many names of a class as its cap allows (places/places.h).  A day has 24 hours,
 * and a month 31 days, and in a flood of made-up names each of them brings other names.  So the
 * pass that completes a day or a month keeps as many names of a class as an hour may have: those
 * with most views or visits, and among equal ones the first by name.  The counts and sketches of
 * the other names are added to what is put together of the class, and their entries are taken away.
 *
 * A late event may give such a name an entry again, with what came late.  So a name that has an
 * entry in a day or a month may have more among what is put together there.  Answers take that into
 * account (pages/capped.h).
 */
#ifndef STORAGE_ROLLUP_TOGETHER_H
#define STORAGE_ROLLUP_TOGETHER_H

#include "storage/job/config.h"
#include "storage/rollup/list.h"

struct together {
    const struct storage_config *config;
    unsigned n_partitions;
    const struct retention *retention; /* the partition's keep times */
    int64_t now_ms;                    /* Redis's clock */
    bool again; /* an earlier pass may have put names together in these buckets */
};

/* Choose the way of each item, and sort the items of @list by site and kind, and among these by
 * way.  Items may be added for what is put together.  False: out of memory. */
bool rollup_put_together(struct rollup_list *list, const struct together *together) MUST_CHECK;

#endif
