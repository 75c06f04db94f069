/* storage_state.h - the parts that a storage is made of.
 *
 * Layer: storage, private to storage.c, which starts and ends the parts, and submit.c, which hands
 * jobs to them.
 */
#ifndef STORAGE_STORAGE_STATE_H
#define STORAGE_STORAGE_STATE_H

#include "storage/fold/fold.h"
#include "storage/hot/fleet.h"
#include "storage/hot/hot_pages.h"
#include "storage/limit/guard.h"
#include "storage/limit/senders.h"
#include "storage/lock/leader.h"
#include "storage/log/writers.h"
#include "storage/readers.h"
#include "storage/rollup/rollup.h"
#include "storage/seen/fold.h"
#include "storage/time/zone_store.h"

struct storage {
    struct core core;
    struct hot_pages *hot;
    struct hot_fleet *hot_fleet;
    struct writers *writers;
    struct seen_fold *seen_fold; /* NULL: this process does not remember who saw what */
    struct guard *guard;         /* NULL: there is no guard */
    struct limit_senders *limits;
    struct readers *readers;
    struct readers *prober;   /* one thread for probes, so that they wait for no question */
    struct leader *leader;    /* NULL: this process never leads */
    struct unfolded unfolded; /* entries that are acknowledged and not counted yet */
    struct fold *fold;
    struct rollup *rollup;
    struct zone_store *zones;
};

/* Hand @job, a limit or a write that has passed its limits, to the thread that sends jobs of this
 * kind to Redis.  @data is the storage.  False: the job is not taken, and *ret_err says why. */
bool storage_send(void *data, struct storage_job *job, enum storage_err *ret_err);

#endif
