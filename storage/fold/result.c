#include "storage/fold/result.h"

#include "storage/session/reply_fault.h"

bool fold_note_error(struct core *core, const struct reply *reply, enum storage_err *err)
{
    bool lost = false;
    atomic_fetch_add(&core->stats.redis_errors, 1);
    if (*err == STORAGE_OK) { /* later errors follow from the first one */
        *err = reply_err(reply, &lost);
        if (*err == STORAGE_REFUSED) { /* not STORAGE_OOM: fold.lua carries that out */
            core_notice(core, STORAGE_REFUSING, reply->text.p);
        }
    }
    return !lost;
}

bool fold_refused(struct core *core, struct server *server, unsigned partition,
    const struct reply *reply, enum storage_err *err)
{
    if (reply_is_error(reply, "ASK") || reply_is_error(reply, "TRYAGAIN")) {
        core_note_open_slot(core, partition, true);
    }
    server_refused(core, server, partition, reply);
    return fold_note_error(core, reply, err);
}
