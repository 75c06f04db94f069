#include "storage/session/reply_fault.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

struct refusal {
    const char *code;
    enum reply_fault fault;
    enum storage_err err;
};

static const struct refusal refusals[] = {
    {"NOSCRIPT", REPLY_RECONNECT, STORAGE_DOWN},
    {"READONLY", REPLY_RECONNECT, STORAGE_REFUSED},
    {"NOAUTH", REPLY_RECONNECT, STORAGE_REFUSED},
    {"MASTERDOWN", REPLY_RECONNECT, STORAGE_DOWN},
    {"MOVED", REPLY_RECONNECT, STORAGE_DOWN},
    {"LOADING", REPLY_LATER, STORAGE_DOWN},
    {"BUSY", REPLY_LATER, STORAGE_DOWN},
    {"ASK", REPLY_LATER, STORAGE_DOWN},
    {"TRYAGAIN", REPLY_LATER, STORAGE_DOWN},
    {"CLUSTERDOWN", REPLY_LATER, STORAGE_DOWN},
    {"OOM", REPLY_FULL, STORAGE_OOM},
    {"MISCONF", REPLY_REFUSED, STORAGE_REFUSED},
    {"NOREPLICAS", REPLY_REFUSED, STORAGE_REFUSED},
    {"NOPERM", REPLY_REFUSED, STORAGE_REFUSED},
};
/* MISCONF with "No space left": Redis passes on what the system said. */
static const struct refusal disk = {"MISCONF", REPLY_REFUSED, STORAGE_DISK};
static const struct refusal other = {"", REPLY_FAILED, STORAGE_REFUSED};

static const struct refusal *refusal_of(const struct reply *reply)
{
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        if (reply_is_error(reply, refusals[i].code)) {
            bool no_space = refusals[i].err == STORAGE_REFUSED &&
                            strstr(reply->text.p, strerror(ENOSPC)) != NULL;
            return no_space ? &disk : &refusals[i];
        }
    }
    return &other;
}

enum reply_fault reply_fault(const struct reply *reply)
{
    return refusal_of(reply)->fault;
}

enum storage_err reply_err(const struct reply *reply, bool *ret_lost)
{
    const struct refusal *refusal = refusal_of(reply);
    *ret_lost = *ret_lost || refusal->fault == REPLY_RECONNECT;
    return refusal->err;
}
