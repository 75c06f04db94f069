/* delivery_direct.h - keyed requests that try to do without a claim, and when they cannot.
 *
 * Layer: storage, private to delivery.c.  A direct request (claim.h) is written with its record in
 * one script, or not at all.  Where that is not possible, or nobody knows whether it was done, it
 * bounces: its job is done() with CLAIM_FIRST, to come again by a claim.
 *
 * Ownership: the flush is the caller's; a job that bounced is not in it any more.  Thread safety:
 * the writer's thread.  storage/write/PROTOCOL.md, "With an Idempotency-Key".
 */
#ifndef STORAGE_WRITE_DELIVERY_DIRECT_H
#define STORAGE_WRITE_DELIVERY_DIRECT_H

#include "storage/core/core.h"
#include "storage/write/flush.h"
#include "storage/fold/pace.h"

/* All direct requests of @flush take the other way.  @in_doubt: they may have been applied. */
void direct_bounce_all(struct flush *flush, bool in_doubt);

/* May something of it have been applied, as far as is known before the connection is given up? */
bool flush_was_sent(const struct flush *flush);

/* Does all of it fit into one script? */
bool direct_fits(const struct core *core, const struct pace *pace, const struct flush *flush);

/* @text: the numbers of direct requests of the script whose keys were used before, the last one
 * first; they bounce.  False: not one of write.lua's answers. */
bool direct_take_used(struct flush *flush, struct slice text);

#endif
