/* reply_fault.h - what an error reply of Redis means for the connection and for the job.
 *
 * Layer: storage, pure.  Thread-safe: no state.
 *
 * Redis answers a command that it does not carry out with an error, whose first word is a code.
 * One table knows the codes, so that every question and every write takes them alike:
 *
 *   code                              what it means                     the job's error
 *   NOSCRIPT                          Redis was restarted: reconnect    STORAGE_DOWN
 *   READONLY NOAUTH                   another Redis now: reconnect      STORAGE_REFUSED
 *   MASTERDOWN                        a replica: reconnect              STORAGE_DOWN
 *   LOADING BUSY                      later, on the same connection     STORAGE_DOWN
 *   MOVED                             another node has it: reconnect    STORAGE_DOWN
 *   ASK TRYAGAIN CLUSTERDOWN          later, on the same connection     STORAGE_DOWN
 *   OOM                               Redis's memory is full            STORAGE_OOM
 *   MISCONF NOREPLICAS NOPERM         refused before it ran             STORAGE_REFUSED
 *   MISCONF with "No space left .."   refused before it ran             STORAGE_DISK
 *   any other                         a script may have done a part     STORAGE_REFUSED
 */
#ifndef STORAGE_SESSION_REPLY_FAULT_H
#define STORAGE_SESSION_REPLY_FAULT_H

#include "storage/base/compiler.h"
#include "storage/job/error.h"
#include "storage/redis/reply.h"

/* The kinds of error replies.  Of all but the last nothing was done. */
enum reply_fault {
    REPLY_RECONNECT, /* a new connection loads the scripts, and looks which Redis is there */
    REPLY_LATER,     /* the same command may be carried out in a moment */
    REPLY_FULL,      /* maxmemory is reached */
    REPLY_REFUSED,   /* refused before it ran */
    REPLY_FAILED,    /* a script may have broken off half way */
};

/* The kind of @reply, which is an error reply. */
enum reply_fault reply_fault(const struct reply *reply) MUST_CHECK;

/* The error of the job whose command got the error reply @reply.  *ret_lost becomes true if the
 * connection must be given up; otherwise it stays as it is.  REPLY_FAILED gives STORAGE_REFUSED,
 * which is right if nothing can have been applied.  A caller that writes cannot know that. */
enum storage_err reply_err(const struct reply *reply, bool *ret_lost) MUST_CHECK;

#endif
